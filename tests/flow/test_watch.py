"""`watch` over fake nodes: what it waits for, what it notes, and what it leaves as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import Interrupted, NotAsWanted
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.report import PairReport
from dspark_deploy.flow.watch import WatchBoot
from dspark_deploy.flow.wish import Limits
from dspark_deploy.plan.journal import BOOTING
from tests.flow.stand import FakeClock, Stand

POOL = "(EngineCore pid=1) INFO 07-18 13:29:28 [m.py:1] GPU KV cache size: 2,493,464 tokens"


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def left_booting(stand: Stand) -> Container:
    """An `up` has begun a boot and was interrupted. The head's container."""
    stand.head.on_start = lambda host, started: host.engine_.say(started.id, POOL)
    with pytest.raises(Interrupted):
        stand.bring_up(clock=FakeClock(interrupt_at=3)).up()
    assert BOOTING in stand.head.marks
    (head,) = stand.head.engine_.kept.values()
    return head


def watch(stand: Stand, **limits: Any) -> PairReport:
    return WatchBoot("spark-pair", stand.hosts, Limits(**limits), stand.observer, FakeClock()).watch()


def serves_soon(stand: Stand, head: Container) -> None:
    """The API opens once it has been asked a few times."""
    asked = 0

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        nonlocal asked
        asked += 1
        if asked == 5:
            stand.head.engine_.say(head.id, "(APIServer pid=1) INFO:     Application startup complete.")
        return stand.answer(method, path, body) if asked > 5 else (503, {})

    stand.head.api = answer


def test_it_waits_until_the_pair_serves_and_completes_what_the_run_had_left(stand: Stand) -> None:
    serves_soon(stand, left_booting(stand))
    report = watch(stand)
    assert report.state == "serving"
    assert not any(host.marks for host in stand.hosts.values())
    (entry,) = stand.worker.history
    assert (entry["command"], entry["outcome"], entry["profile"]) == ("up", "serving", "agent-1m")
    assert entry["kv_cache_tokens"] == 2493464
    assert "head" in entry["phases"]


def test_a_pair_that_serves_is_told_at_once_and_its_logs_are_not_read(stand: Stand) -> None:
    stand.bring_up().up()
    entries = len(stand.head.history)
    assert watch(stand).state == "serving"
    assert stand.observer.progresses == []
    assert len(stand.head.history) == entries


def test_a_rank_that_dies_while_it_is_watched_is_told_noted_and_left_as_it_is(stand: Stand) -> None:
    left_booting(stand)
    (worker,) = stand.worker.engine_.kept
    asked = 0

    def dies_meanwhile(_method: str, _path: str, _body: Any) -> tuple[int, Any]:
        nonlocal asked
        asked += 1
        if asked == 3:
            stand.worker.engine_.die(worker, 3, "RuntimeError: no luck")
        return 503, {}

    stand.head.api = dies_meanwhile
    with pytest.raises(NotAsWanted, match="exit code 3") as raised:
        watch(stand)
    assert raised.value.node == "worker"
    assert stand.worker.engine_.stopped == []
    assert BOOTING not in stand.head.marks
    assert stand.head.history[-1]["outcome"] == "launch-failed"


def test_a_pair_of_which_one_rank_has_died_is_no_boot(stand: Stand) -> None:
    left_booting(stand)
    (worker,) = stand.worker.engine_.kept
    stand.worker.engine_.die(worker, 3)
    with pytest.raises(NotAsWanted, match="split"):
        watch(stand)


def test_nothing_that_runs_is_no_boot(stand: Stand) -> None:
    with pytest.raises(NotAsWanted, match="no boot to watch"):
        watch(stand)


def test_a_watch_that_takes_too_long_notes_nothing(stand: Stand) -> None:
    left_booting(stand)
    with pytest.raises(NotAsWanted, match="within 20 s"):
        watch(stand, api_s=20)
    assert BOOTING in stand.head.marks
    assert stand.head.history == []


def test_a_worker_whose_head_never_came_is_no_boot(stand: Stand) -> None:
    stand.bring_up().up()
    (head,) = stand.head.engine_.kept
    stand.head.engine_.vanish(head)
    with pytest.raises(NotAsWanted, match="split"):
        watch(stand)


def test_an_api_that_answers_and_generates_nothing_is_not_as_wanted(stand: Stand) -> None:
    left_booting(stand)

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        return stand.answer(method, path, body) if method == "GET" else (500, {"error": "dead"})

    stand.head.api = answer
    with pytest.raises(NotAsWanted, match="does not generate"):
        watch(stand, api_s=5)
