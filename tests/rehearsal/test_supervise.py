"""`supervise` over the embedded pair: real connections and engines, no Docker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..bed.supervised import QUICK, Supervise
from .pair import RehearsedPair

QUICKER = ("--canary-every", "300ms", "--wedge-after", "2s")  # no kernel and no cable is in the way


def supervised(pair: RehearsedPair) -> Supervise:
    """A `dspark rehearse supervise`."""
    return Supervise(pair.begin("rehearse", "supervise", "--output", "json", *QUICK, *QUICKER))


@pytest.fixture(name="supervise")
def _supervise(rehearsed: RehearsedPair) -> Iterator[Supervise]:
    rehearsed.dspark("up").check()
    supervise = supervised(rehearsed)
    supervise.until("serves")
    yield supervise
    supervise.end()


def test_what_dies_and_what_hangs_is_brought_back_worker_first(rehearsed: RehearsedPair, supervise: Supervise) -> None:
    (worker,) = rehearsed.api("worker").containers()
    rehearsed.api("worker").kill(worker.id)
    supervise.until("restarted", "serves again")
    steps = supervise.texts("step")
    assert steps.index("start the worker") < steps.index("start the head")
    rehearsed.switch("head", {"wedge_after": 3})  # its own canaries are enough to get there
    supervise.until("restarts", "nothing moves for")
    rehearsed.switch("head", {})  # or the next head would hang after three answers, too
    supervise.until("restarted", "serves again")
    assert supervise.end() == 130
    assert rehearsed.dspark("status").check().stdout.startswith("rehearsal: serving")


def test_a_dry_run_says_what_would_be_done(rehearsed: RehearsedPair) -> None:
    rehearsed.dspark("up").check()
    (head,) = rehearsed.api("head").containers()
    rehearsed.api("head").kill(head.id)
    shown = rehearsed.dspark("supervise", "-n", "--output", "json").check().json()["result"]
    assert (shown["kind"], "the rank on the head" in shown["text"]) == ("restarts", True)
    assert [each.state for each in rehearsed.api("head").containers()] == ["exited"]
    rehearsed.dspark("down").check()
    assert "nothing is meant to serve" in rehearsed.dspark("supervise", "-n").check().stdout


def test_another_run_goes_first(rehearsed: RehearsedPair, supervise: Supervise) -> None:
    wait = ("--lock-wait", "10s")  # a look under the lock may be in the way
    up = rehearsed.dspark("up", "-p", "coding-1m", "--yes", "--output", "json", *wait).check().json()["result"]
    supervise.until("serves", f"release {up['release']}")
    rehearsed.dspark("down", *wait).check()
    supervise.until("waits", "nothing is meant to serve")
    assert supervise.texts("restarts") == []
    assert rehearsed.api("head").containers() == []
