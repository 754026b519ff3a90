"""`down` over fake nodes: what it confirms, what it can't, and what it names besides."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import Interrupted, NodeUnreachable
from dspark_deploy.flow.down import NodeEnd, _Down, lock_reached
from dspark_deploy.flow.pair import OpenHosts, Reached
from dspark_deploy.flow.record import Record
from dspark_deploy.flow.renew import renewal
from dspark_deploy.remote.host import Host, Result, Session
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock, Stand
from tests.samples import container, memory

SEGMENT = "/dev/shm/psm_1f2e3d4c"


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    stand = Stand(tmp_path)
    for host in stand.hosts.values():
        host.results[("find",)] = Result((), 0, "", "")
        host.results[("nvidia-smi",)] = Result((), 0, "", "")
        host.engine_.add(replace(container(host.name), gpu_memory_utilization=0.85))
    return stand


def lost(node: str) -> NodeUnreachable:
    return NodeUnreachable(f"{node}: the SSH connection is gone", remedy="see that it is on", node=node)


def take(stand: Stand, *, without: str = "", clock: FakeClock | None = None, heals: bool = True) -> tuple[NodeEnd, ...]:
    """One `down`. A connection that is opened anew works, where it `heals`."""

    def open_one(node: str) -> Host:
        if not heals:
            raise lost(node)
        stand.hosts[node].engine_.failing = stand.hosts[node].lock_owner = None
        return stand.hosts[node]

    hosts = OpenHosts(open_one)
    hosts.update({node: host for node, host in stand.hosts.items() if node != without})
    reached = Reached(hosts, {without: lost(without)} if without else {})
    record = Record(stand.folder / "state", "spark-pair", "down", stand.observer.warn)
    with ExitStack() as opened:
        reached, guarded = lock_reached(reached, record, clock or FakeClock(), opened, wait_s=0)
        return _Down(reached, record, stand.observer, guarded, renewal(hosts, guarded)).take()


def test_both_ranks_are_ended_head_first_and_noted(stand: Stand) -> None:
    ends = take(stand)
    assert [(end.node, len(end.stopped), end.problem, end.left) for end in ends] == [
        ("head", 1, "", ()),
        ("worker", 1, "", ()),
    ]
    assert stand.running() == {"head": [], "worker": []}
    assert [entry["outcome"] for entry in stand.worker.history] == ["down"]


def test_a_node_that_is_gone_leaves_a_tombstone_on_the_other(stand: Stand) -> None:
    _, worker = take(stand, without="worker")
    assert "NOT stopped" in worker.problem
    assert list(stand.head.marks) == ["unconfirmed-worker"]


def test_a_tombstone_goes_when_its_node_is_confirmed_also_where_nothing_is_to_stop(stand: Stand) -> None:
    take(stand, without="worker")
    stand.worker.engine_.kept.clear()
    take(stand)
    assert stand.head.marks == {}


def test_a_second_down_leaves_no_trace(stand: Stand) -> None:
    take(stand)
    take(stand)
    assert len(stand.head.history) == 1


def test_a_connection_that_broke_is_opened_anew_and_the_rank_is_ended(stand: Stand) -> None:
    stand.head.engine_.failing = lost("head")
    assert [end.problem for end in take(stand)] == ["", ""]
    assert stand.running() == {"head": [], "worker": []}


def test_a_node_that_goes_meanwhile_does_not_keep_the_other_from_its_end(stand: Stand) -> None:
    stand.head.engine_.failing = lost("head")
    head, worker = take(stand, heals=False)
    assert (bool(head.problem), worker.problem) == (True, "")
    assert stand.running()["worker"] == []
    assert list(stand.worker.marks) == ["unconfirmed-head"]


@pytest.mark.parametrize("node", ["head", "worker"])
def test_a_connection_that_breaks_while_the_locks_are_taken_is_opened_anew(
    stand: Stand, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks_once_at_the_lock(stand.hosts[node], monkeypatch)
    assert [end.problem for end in take(stand)] == ["", ""]
    assert stand.running() == {"head": [], "worker": []}


def test_a_node_that_goes_while_the_locks_are_taken_does_not_keep_the_other_from_its_end(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks_once_at_the_lock(stand.worker, monkeypatch)
    head, worker = take(stand, heals=False)
    assert (head.problem, "NOT stopped" in worker.problem) == ("", True)
    assert stand.running()["head"] == []
    assert list(stand.head.marks) == ["unconfirmed-worker"]


def breaks_once_at_the_lock(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    start = host.start
    broken: list[str] = []

    def breaks(program: str, request: Any, *, timeout_s: float) -> Session:
        if not broken:
            broken.append(program)
            raise lost(host.name)
        return start(program, request, timeout_s=timeout_s)

    monkeypatch.setattr(host, "start", breaks)


def test_an_interruption_between_the_nodes_says_what_was_ended(stand: Stand) -> None:
    class Once(FakeClock):
        """Interrupted at the second chance."""

        turns = 0

        def sleep(self, seconds: float) -> None:
            self.turns += 1
            if self.turns == 2:
                raise Interrupted("interrupted by SIGINT", remedy="run it again")
            super().sleep(seconds)

    with pytest.raises(Interrupted) as raised:
        take(stand, clock=Once())
    assert "head was ended" in raised.value.why
    assert "worker is as it was" in raised.value.why


def test_what_its_processes_leave_is_named(stand: Stand) -> None:
    stand.head.results[("find",)] = Result((), 0, f"{SEGMENT}\n", "")
    stand.head.results[("nvidia-smi",)] = Result((), 0, "4242, python3\n", "")
    head, worker = take(stand)
    assert head.left == (f"left in shared memory: {SEGMENT}", "process 4242, python3 still holds the GPU")
    assert worker.left == ()


def test_memory_that_does_not_come_back_is_named_after_a_limit(stand: Stand) -> None:
    stand.worker.memories = [replace(memory(), available=10 * 2**30)]
    _, worker = take(stand)
    assert worker.problem == ""
    assert "60 s after the stop" in worker.left[-1]


def test_memory_that_comes_back_late_is_waited_for(stand: Stand) -> None:
    low: FakeHost = stand.worker
    low.memories = [replace(memory(), available=10 * 2**30), memory()]
    assert take(stand)[1].left == ()
