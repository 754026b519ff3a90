"""`supervise` on two real hosts: whatever takes the pair down, it comes back without anyone's help."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from .bed import Bed
from .host import wait_until
from .supervised import QUICK, Supervise
from .tool import DSPARK, chat, dspark, result


def supervised(bed: Bed) -> Supervise:
    """A `dspark supervise` of the bed's pair."""
    return Supervise(bed.popen([DSPARK, "supervise", "--output", "json", *QUICK]))


@pytest.fixture(name="supervise")
def _supervise(bed: Bed) -> Iterator[Supervise]:
    """A pair that serves, supervised."""
    dspark(bed, "up").check()
    supervise = supervised(bed)
    supervise.until("serves")
    yield supervise
    supervise.end()


def serves_again(bed: Bed, supervise: Supervise) -> None:
    """Both ranks are new, the worker was first, and text comes."""
    steps = supervise.texts("step")
    assert steps.index("start the worker") < steps.index("start the head")
    (head,), (worker,) = bed.head.containers(), bed.worker.containers()
    assert (head.state, worker.state) == ("running", "running")
    assert worker.created <= head.created
    assert chat(bed, f"http://{bed.head.lan_address}:8888/v1", "deepseek-v4-flash-0731")["choices"]


def test_a_rank_that_is_killed_is_brought_back_and_an_end_touches_nothing(bed: Bed, supervise: Supervise) -> None:
    bed.head.api.kill(bed.head.containers()[0].id)
    assert "s after it was first seen not to" in supervise.until("restarted", "serves again")
    assert "the rank on the head is exited" in supervise.texts("restarts")[0]
    serves_again(bed, supervise)
    history = result(dspark(bed, "history", "--output", "json").check())
    assert [(each["command"], each["outcome"]) for each in history["entries"]] == [
        ("up", "serving"),
        ("supervise", "serving"),
    ]
    before = [node.containers() for node in bed.nodes]
    assert supervise.end() == 130
    again = supervised(bed)
    again.until("serves")
    assert again.end() == 130
    assert [node.containers() for node in bed.nodes] == before


def test_a_node_that_reboots_gets_its_rank_back(bed: Bed, supervise: Supervise) -> None:
    bed.worker.power_off()
    bed.worker.power_on()
    supervise.until("restarted", "serves again")
    assert supervise.texts("event").count("worker: answers again") == 1
    serves_again(bed, supervise)


def test_a_docker_daemon_that_crashes_costs_one_restart(bed: Bed, supervise: Supervise) -> None:
    bed.worker.kill_dockerd()
    supervise.until("waits", "the docker daemon does not run")
    bed.worker.start_dockerd()
    supervise.until("restarted", "serves again")
    assert len(supervise.texts("restarts")) == 1
    serves_again(bed, supervise)


def test_while_the_fabric_is_cut_no_restart_is_spent_and_then_it_generates(bed: Bed, supervise: Supervise) -> None:
    bed.worker.pull_cable()
    supervise.until("waits", "has no link")
    assert supervise.texts("restarts") == []
    bed.worker.plug_cable()
    # By itself or by a restart: a step that hung in the cut may go on or not.
    told = supervise.until_any({"serves": "s without a sign of life", "restarted": "serves again"})
    assert re.search(r"\d+\.\d s (without a sign of life|after it was first seen not to)", told)
    wait_until(lambda: _answers(bed), 30, "an answer to a chat")


def _answers(bed: Bed) -> bool:
    try:
        return bool(chat(bed, f"http://{bed.head.lan_address}:8888/v1", "deepseek-v4-flash-0731")["choices"])
    except AssertionError:  # refused or cut off: a restart is under way
        return False


def test_a_rank_that_dies_at_once_every_time_is_given_up_with_the_reason(bed: Bed, supervise: Supervise) -> None:
    bed.worker.stub(die_at="start", die_message="RuntimeError: no luck today")
    bed.worker.api.kill(bed.worker.containers()[0].id)
    assert "3 restarts in a row failed" in supervise.until("gives-up")
    code, stderr = supervise.wait()
    assert code == 8
    assert "spark-pair is given up: 3 restarts in a row failed" in stderr
    assert "worker" in stderr
    assert len(supervise.texts("restarts")) == 3
    assert [node.containers() for node in bed.nodes] == [[], []]


_LONG = """
import json, sys, urllib.request
body = json.dumps({"model": "deepseek-v4-flash-0731", "prompt": "word " * 20000, "max_tokens": 1}).encode()
request = urllib.request.Request(sys.argv[1], body, {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request, timeout=60))["usage"]["prompt_tokens"])
"""


def test_a_long_prefill_is_never_taken_for_a_wedge(bed: Bed, supervise: Supervise) -> None:
    """Three times as long as a wedge may last, without a token."""
    bed.head.stub(first_token_s=9)
    ran = bed.run([sys.executable, "-c", _LONG, f"http://{bed.head.lan_address}:8888/v1/completions"]).check()
    assert ran.seconds > 9
    bed.head.stub()
    assert supervise.end() == 130
    supervise.until("ends")
    assert supervise.texts("restarts") == []
