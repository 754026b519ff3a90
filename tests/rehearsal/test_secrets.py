"""An API key on the embedded pair: nowhere but where it belongs, asked for by the API, given by every command."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..bed.run import Ran
from ..contract import NODES, NOTHING, left
from .pair import RehearsedPair

CANARY = "canary-4f1b9c07"
KEY = f"sk-{CANARY}+/=&"  # looks another way in a URL
HELD = Path(".local/share/dspark/rehearsal/secrets.env")


@pytest.fixture(name="keyed")
def _keyed(rehearsed: RehearsedPair) -> Iterator[RehearsedPair]:
    """The pair with a key file in its inventory."""
    inventory = rehearsed.folder / "inventory.yaml"
    plain = inventory.read_text()
    give(rehearsed, KEY)
    inventory.write_text(plain.replace("api: {", "api: {key_file: api.key, "))
    yield rehearsed
    inventory.write_text(plain)
    key_file(rehearsed).unlink(missing_ok=True)


def key_file(pair: RehearsedPair) -> Path:
    return pair.folder / "api.key"


def give(pair: RehearsedPair, key: str) -> None:
    key_file(pair).write_text(f"{key}\n")
    key_file(pair).chmod(0o600)


def take_out(pair: RehearsedPair) -> None:
    """Leave the key out of the inventory."""
    inventory = pair.folder / "inventory.yaml"
    inventory.write_text(inventory.read_text().replace("key_file: api.key, ", ""))


def held(pair: RehearsedPair) -> list[str]:
    """What each node keeps as its key, head first."""
    paths = [pair.home(node) / HELD for node in NODES]
    return [path.read_text() if path.exists() else "" for path in paths]


def ask(pair: RehearsedPair, path: str, key: str = "") -> int:
    """The status that the API answers with."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = f"http://127.0.0.1:{pair.ports['api']}{path}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def holders(pair: RehearsedPair, *ran: Ran) -> list[str]:
    """Everything that shows the key: files of controller and nodes, engines, processes, and what was printed."""
    where = [str(path.relative_to(pair.state)) for path in pair.state.rglob("*") if shows(path)]
    for node in NODES:
        api = pair.api(node)
        shown = [api.inspect(each.id) for each in api.containers()]
        where += [f"{node} inspect"] if CANARY in json.dumps(shown) else []
    listed = subprocess.run(["ps", "-Aww", "-o", "args="], check=True, capture_output=True, text=True).stdout
    where += [line for line in listed.splitlines() if CANARY in line]
    return where + [" ".join(each.argv) for each in ran if CANARY in each.stdout + each.stderr]


def shows(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and CANARY.encode() in path.read_bytes()


BELONGS = {f"dspark/rehearsal/head/home/{HELD}", "dspark/rehearsal/api.key"}


def test_a_key_is_found_where_it_belongs_and_nowhere_else_whatever_is_done(
    keyed: RehearsedPair, tmp_path: Path
) -> None:
    lines = (
        "plan --output json",
        f"render --dir {tmp_path / 'files'}",
        "up -v --output json",
        "up -v",
        "status --output json",
        "logs",
        "smoke",
        "bench decode --concurrency 1 --trials 1 --tokens 8",
        "parity",
        f"doctor --record {tmp_path / 'record'}",
    )
    ran = [keyed.dspark(*line.split()).check() for line in lines]
    assert set(holders(keyed, *ran)) == BELONGS
    ran = [keyed.dspark(*line.split()).check() for line in ("switch stage-c --yes", "history --output json", "down")]
    assert set(holders(keyed, *ran)) == BELONGS
    assert [path for path in tmp_path.rglob("*") if shows(path)] == []


def test_the_api_asks_for_its_key_until_that_is_taken_out_and_another_one_restarts_both_ranks(
    keyed: RehearsedPair,
) -> None:
    keyed.dspark("up").check()
    assert held(keyed) == [f"VLLM_API_KEY={KEY}\n", ""]
    asked = [ask(keyed, "/v1/models"), ask(keyed, "/v1/models", "sk-second"), ask(keyed, "/v1/models", KEY)]
    assert asked == [401, 401, 200]
    assert ask(keyed, "/health") == 200
    give(keyed, "sk-second")
    ran = keyed.dspark("smoke")
    assert (ran.returncode, "does not take the key" in ran.stderr) == (2, True), ran
    plan = keyed.dspark("plan", "--output", "json").check().json()["result"]
    assert "give the head its API key" in plan["steps"]
    assert any("API key is not the one" in warning for warning in plan["warnings"])
    keyed.dspark("up", "--yes").check()
    assert held(keyed) == ["VLLM_API_KEY=sk-second\n", ""]
    assert [ask(keyed, "/v1/models", KEY), ask(keyed, "/v1/models", "sk-second")] == [401, 200]
    take_out(keyed)
    told = keyed.dspark("status", "--output", "json").json()["result"]
    assert told["state"] == "unknown"
    assert "asks for a key, and none is given" in told["detail"]
    assert "api.key_file" in told["detail"]
    keyed.dspark("up", "--yes").check()
    assert held(keyed) == ["", ""]
    assert ask(keyed, "/v1/models") == 200


def test_what_a_server_logs_of_its_key_is_masked(keyed: RehearsedPair) -> None:
    keyed.switch("head", {"die_at": "load", "die_message": f"ValueError: bad key {KEY} in a log"})
    ran = keyed.dspark("up", "-v")
    assert ran.returncode == 4
    assert "bad key *** in a log" in ran.stdout + ran.stderr
    assert left(keyed) == NOTHING
    keyed.switch("head", {})  # which named it
    assert holders(keyed, ran) == ["dspark/rehearsal/api.key"], "the node had none before"
