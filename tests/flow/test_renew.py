"""A connection that breaks while a run changes the pair: what is undone, and what is not claimed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dspark_deploy.errors import LaunchFailed, LockLost, NodeUnreachable, NotAsWanted
from dspark_deploy.execute.lock import GuardedClock, locked
from dspark_deploy.facts.node import Container
from dspark_deploy.remote.clock import Clock
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock, Stand


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def cut(host: FakeHost, _container: Container) -> None:
    """The connection to the node breaks as its rank starts."""
    host.engine_.failing = NodeUnreachable(f"{host.name}: the SSH connection is gone", remedy="…", node=host.name)


def test_a_broken_connection_is_opened_anew_to_bring_back_what_served(stand: Stand) -> None:
    first = stand.bring_up().up()
    stand.worker.on_start = cut

    def renew(node: str) -> None:
        stand.hosts[node].engine_.failing = None
        stand.worker.on_start = stand.start_worker

    up = replace(stand.bring_up("coding-1m"), renew=renew)
    with pytest.raises(LaunchFailed) as raised:  # exit 5 would say that nothing was changed
        up.up()
    assert "serves again" in raised.value.why
    assert stand.running() == {"head": [first.release], "worker": [first.release]}


def test_a_node_that_stays_away_is_owed_its_stop(stand: Stand) -> None:
    stand.worker.on_start = cut

    def renew(node: str) -> None:
        raise NodeUnreachable(f"{node}: no answer", remedy="…", node=node)

    with pytest.raises(NotAsWanted) as raised:
        replace(stand.bring_up(), renew=renew).up()
    assert raised.value.node == "worker"
    assert list(stand.head.marks) == ["unconfirmed-worker"]
    assert stand.head.history[-1]["outcome"] == "not-as-wanted"


def test_a_pair_that_another_run_has_by_now_is_left_alone(stand: Stand) -> None:
    stand.worker.on_start = cut

    def renew(node: str) -> None:
        raise LockLost(f"{node}: another run has it now", remedy="…", node=node)

    with pytest.raises(LockLost):
        replace(stand.bring_up(), renew=renew).up()
    assert stand.head.marks == {}


def test_a_start_that_was_proved_and_then_lost_sight_of_is_not_called_unreachable(stand: Stand) -> None:
    def answers_and_goes(host: FakeHost, container: Container) -> None:
        stand.start_head(host, container)
        host.failing["remember"] = host.failing["journal"] = NodeUnreachable("head: gone", remedy="…", node="head")

    stand.head.on_start = answers_and_goes
    report = stand.bring_up().up()
    assert report.state == "serving"
    assert any("misses this run" in warning for warning in stand.observer.warnings)


def test_a_lock_is_taken_anew_with_its_connection_and_waited_for(stand: Stand) -> None:
    clock = FakeClock()
    with locked(stand.hosts, "spark-pair", {"who": "me"}, clock) as guarded:
        _lose(guarded, stand.worker)
        stand.worker.lock_owner = {"who": "me"}  # its node has not noticed yet
        with pytest.raises(LockLost, match="another run has it"):
            guarded.retake(stand.worker)
        stand.worker.lock_owner = None
        guarded.retake(stand.worker)
        guarded.sleep(0)
    sessions = [session for session in stand.worker.sessions if session.answer["locked"]]
    assert [session.closed for session in sessions] == [True, True]


def _lose(guarded: GuardedClock, host: FakeHost) -> None:
    """The heartbeat of one node fails."""
    session = guarded._beat._sessions[host.name]
    error = NodeUnreachable(f"{host.name}: gone", remedy="…", node=host.name)
    guarded._beat._lose(host.name, session, error)
    waits: Clock = guarded
    with pytest.raises(NodeUnreachable):
        waits.sleep(0)
