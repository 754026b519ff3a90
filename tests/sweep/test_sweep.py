"""The sweep itself: what it numbers, what it takes for true, and two of its points for a start."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ..bed.run import run
from .judge import alive, expected_status
from .points import WAYS, points_of

ROOT = Path(__file__).parents[2]


def told(head: list[str], worker: list[str]) -> dict[str, Any]:
    """Each node's containers, as `state release`."""
    return {
        node: {"containers": [[*each.split(), "rehearsal-vllm-1"] for each in there]}
        for node, there in (("head", head), ("worker", worker))
    }


def test_every_step_is_stopped_in_every_way() -> None:
    points = points_of("up", [("head", "lock", 1), ("worker", "lock", 1), ("worker", "probe", 1)])
    assert len(points) == 3 * len(WAYS)
    assert {point.number for point in points} == {1, 2, 3}
    assert str(points[-1]) == "up 3, probe on the worker: unreachable"


@pytest.mark.parametrize(
    ("there", "gone", "words"),
    [
        (told([], []), None, {"down"}),
        (told(["exited a"], ["running a"]), None, {"split"}),
        (told(["running a"], ["running b"]), None, {"mixed"}),
        (told(["running a"], ["running a"]), None, {"serving", "booting"}),
        (told(["running a"], ["running a"]), "head", {"unknown"}),
    ],
)
def test_the_word_follows_from_the_containers(there: dict[str, Any], gone: str | None, words: set[str]) -> None:
    assert expected_status(there, gone)[0] == words


def test_a_rank_that_ended_is_not_alive() -> None:
    assert alive(told(["exited a"], ["running b"])) == {"head": None, "worker": "b"}


@pytest.mark.sweep
def test_a_cut_while_a_rank_starts_is_undone() -> None:
    ran = run([sys.executable, "-m", "tests.sweep", "rollback", "compose", "cut"], cwd=ROOT, timeout=300).check()
    assert "2 points tried" in ran.stdout
    assert "0 wrong; 0 ended before their step came" in ran.stdout
