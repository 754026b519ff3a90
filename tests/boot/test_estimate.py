"""Time left, from durations that are given."""

from __future__ import annotations

import pytest

from dspark_deploy.boot.estimate import TimeLeft, learned, published, time_left
from dspark_deploy.boot.phases import Phase

HEAD = published("head")


def test_the_published_boot_takes_five_minutes_and_six_seconds_on_the_head() -> None:
    assert time_left(None, 0, HEAD, last=Phase.READY) == TimeLeft(306, 0)


def test_the_worker_is_done_where_its_log_ends() -> None:
    worker = published("worker")
    assert time_left(Phase.CAPTURE, 3, worker, last=Phase.ENGINE_READY).seconds == 5
    assert time_left(Phase.ENGINE_READY, 900, worker, last=Phase.ENGINE_READY) == TimeLeft(0, 0)


def test_later_phases_are_added_to_what_is_left_of_this_one() -> None:
    assert time_left(Phase.CAPTURE, 5, HEAD, last=Phase.READY) == TimeLeft(10 + 4, 0)


def test_a_bar_beats_the_usual_duration() -> None:
    rest_s = sum(HEAD[phase] for phase in Phase if phase > Phase.WEIGHTS)
    left = time_left(Phase.WEIGHTS, 60, HEAD, percent=50, last=Phase.READY)
    assert left == TimeLeft(60 + rest_s, 0)
    slow = time_left(Phase.WEIGHTS, 400, HEAD, percent=80, last=Phase.READY)
    assert slow == TimeLeft(100 + rest_s, 500 - HEAD[Phase.WEIGHTS])


def test_a_bar_that_has_not_moved_says_nothing() -> None:
    assert time_left(Phase.WEIGHTS, 2, HEAD, percent=0, last=Phase.READY) == time_left(
        Phase.WEIGHTS, 2, HEAD, last=Phase.READY
    )


def test_a_phase_that_takes_longer_than_usual_is_late() -> None:
    assert time_left(Phase.CAPTURE, 45, HEAD, last=Phase.READY) == TimeLeft(4, 30)


def test_earlier_runs_are_learned_from_phase_by_phase() -> None:
    runs = [{Phase.WEIGHTS: 500.0}, {Phase.WEIGHTS: 520.0, Phase.CAPTURE: 9.0}, {Phase.WEIGHTS: 90.0}]
    known = learned(runs, HEAD)
    assert (known[Phase.WEIGHTS], known[Phase.CAPTURE], known[Phase.NCCL]) == (500.0, 9.0, HEAD[Phase.NCCL])


@pytest.mark.parametrize("node", ["head", "worker"])
def test_the_published_durations_name_every_phase(node: str) -> None:
    assert set(published("head" if node == "head" else "worker")) == set(Phase)
