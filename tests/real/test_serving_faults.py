"""What becomes of a pair that serves, when one of its ranks or its cable fails: caused for real, and told rightly."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bed.bed import Bed
from tests.bed.host import wait_until
from tests.bed.tool import nothing_is_left

from .pair import BOOT_S, MODEL, Pair

KEY = "a-key-that-nobody-else-has"
CUT_S = 30
HANGS_FOR_S = 90  # after a cable is back: TCP tries again at growing intervals


@pytest.fixture(name="both_run")
def _both_run(pair: Pair) -> None:
    """A pair that serves, as the test before may have left it."""
    if pair.told("status")["state"] != "serving":
        pair.up().check()


@pytest.mark.usefixtures("both_run")
def test_a_cable_that_is_out_for_30_s_is_noticed_and_nothing_has_to_restart(bed: Bed, pair: Pair) -> None:
    before = [container.id for node in bed.nodes for container in node.running()]
    bed.worker.pull_cable()
    cut = time.monotonic()
    told = pair.told("status")
    assert pair.ask("/health")[0] == 200  # it does not know
    assert told["state"] == "wedged"
    assert "token" in told["detail"]
    wait_until(lambda: time.monotonic() - cut > CUT_S, CUT_S + 5)
    bed.worker.plug_cable()
    assert pair.say(limit_s=HANGS_FOR_S)[0] == 200
    assert pair.told("status")["state"] == "serving"
    assert [container.id for node in bed.nodes for container in node.running()] == before


@pytest.mark.usefixtures("both_run")
def test_a_worker_that_dies_is_noticed_though_the_head_still_says_healthy(bed: Bed, pair: Pair) -> None:
    pair.terminate(bed.worker, "KILL")
    assert pair.ask("/health")[0] == 200
    told = pair.told("status")
    assert told["state"] == "split"
    assert [rank["state"] for rank in told["ranks"]] == ["running", "exited"]
    assert pair.say()[0] == 500  # the first request that needs the worker ends the head
    wait_until(lambda: not bed.head.running(), 60, "the end of the head")
    answer = pair.explained()["answer"]
    assert (answer["failure"], answer["node"]) == ("F55", "head")


def test_ranks_that_differ_boot_and_serve_in_silence_and_parity_names_what_differs(bed: Bed, pair: Pair) -> None:
    compose = pair.rendered(bed.worker, "compose.yaml")
    text = bed.worker.read(compose)
    changed = text.replace('"--max-num-seqs", "6"', '"--max-num-seqs", "5"')
    assert changed != text
    bed.worker.write(compose, changed, mode=0o600, owner=bed.worker.identity.uid)
    pair.start_by_hand()
    pair.dspark("watch", timeout=BOOT_S).check()  # nobody complains
    assert pair.say()[0] == 200
    ran = pair.dspark("parity", "--output", "json")
    assert ran.returncode == 7, ran
    differing = [finding for finding in ran.json()["result"]["findings"] if finding["status"] == "fail"]
    assert "--max-num-seqs: head 6, worker 5" in [finding["message"] for finding in differing]
    bed.worker.write(compose, text, mode=0o600, owner=bed.worker.identity.uid)


@pytest.fixture(name="key", scope="module")
def _key(bed: Bed) -> dict[str, Any]:
    """An inventory's entry for a file with a key."""
    file = Path(bed.client / "api-key")
    file.write_text(KEY + "\n")
    file.chmod(0o600)
    return {"api__key_file": str(file)}


@pytest.mark.usefixtures("both_run")
def test_a_head_that_is_terminated_leaves_its_worker_and_up_heals_the_pair(
    bed: Bed, pair: Pair, key: dict[str, Any]
) -> None:
    pair.terminate(bed.head, "TERM")
    time.sleep(5)  # would be enough for a worker that goes with its head: this one stays for ever
    (stale,) = bed.worker.running()
    told = pair.told("status")
    assert told["state"] == "split"
    assert [rank["state"] for rank in told["ranks"]] == ["exited", "running"]
    healed = pair.up(**key).check().json()["result"]
    assert healed["state"] == "serving"
    assert bed.worker.running()[0].id != stale.id  # a new head would hang against the old one


def test_a_key_shuts_the_api_to_others_and_is_told_to_nobody(bed: Bed, pair: Pair, key: dict[str, Any]) -> None:
    pair.up(**key).check()
    assert pair.ask("/health")[0] == 200
    assert pair.ask("/v1/models")[0] == 401
    status, text = pair.ask("/v1/models", key=KEY)
    assert (status, json.loads(text)["data"][0]["id"]) == (200, MODEL)
    assert pair.told("status", **key)["state"] == "serving"
    for node in bed.nodes:
        assert KEY not in pair.log(node)
        assert KEY not in json.dumps(node.api.inspect(node.running()[0].id))


def test_down_ends_both_ranks_and_leaves_nothing(bed: Bed, pair: Pair) -> None:
    pair.dspark("down").check()
    nothing_is_left(bed)
