"""A stall is called when nothing of either rank moves, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from dspark_deploy.errors import LaunchFailed, StepFailed
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.watch.boot import BootWatch
from dspark_deploy.watch.stall import StallWatch
from tests.fakes import FakeHost, pulse
from tests.flow.stand import FakeClock
from tests.samples import container, node_facts

STALL_S = 100.0


class Still:
    """Two ranks that print nothing."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.hosts = {node: FakeHost(node_facts(node)) for node in ("head", "worker")}
        self.boot = BootWatch(self.clock, bundled_rules)
        for node, host in self.hosts.items():
            self.boot.start(host, host.engine_.add(container(node)))
        self.watch = StallWatch(self.hosts, self.boot, self.clock, STALL_S)

    def wait(self, seconds: float) -> None:
        """Turn after turn; each pulse has its answer before time goes on."""
        end_s = self.clock.now() + seconds
        while self.clock.now() < end_s:
            self.watch.turn()
            if self.watch._task is not None:
                self.watch._task.done.wait(5)
                self.watch.turn()
            self.clock.sleep(1)


def test_nothing_that_moves_for_so_long_is_a_stall_that_says_what_was_looked_at() -> None:
    still = Still()
    with pytest.raises(LaunchFailed) as raised:
        still.wait(2 * STALL_S)
    assert STALL_S <= still.clock.now() <= 1.3 * STALL_S
    assert "compile caches were looked at" in raised.value.why
    assert "--stall" in raised.value.remedy


@pytest.mark.parametrize(
    "moves",
    [
        [pulse(cpu_s=used) for used in range(0, 2000, 5)],
        [pulse(0.0, "cicc")],
        [pulse(cache=size) for size in range(400)],
    ],
    ids=["CPU time", "a compiler", "a cache that grows"],
)
def test_one_sign_of_work_by_one_rank_is_no_stall(moves: list[dict[str, Any]]) -> None:
    still = Still()
    still.hosts["worker"].pulses = list(moves)
    still.wait(3 * STALL_S)


def test_a_line_of_either_log_is_no_stall() -> None:
    still = Still()
    for number in range(4):
        still.wait(0.8 * STALL_S)
        rank = still.boot.ranks["head"]
        still.hosts["head"].engine_.say(rank.container_id, f"line {number}")
        while f"line {number}" not in rank.tail(1):
            still.clock.sleep(0)


def test_a_process_that_only_keeps_its_timers_does_not_move() -> None:
    still = Still()
    still.hosts["head"].pulses = [pulse(cpu_s=0.01 * seconds) for seconds in range(0, 4000, 20)]
    with pytest.raises(LaunchFailed):
        still.wait(2 * STALL_S)


def test_what_can_not_be_read_is_said() -> None:
    still = Still()
    still.hosts["head"].pulses = [pulse(unread={"VLLM_CACHE_ROOT": "Permission denied"})]
    still.hosts["worker"].failing["pulse"] = StepFailed("worker: no answer", remedy="look", node="worker")
    with pytest.raises(LaunchFailed) as raised:
        still.wait(2 * STALL_S)
    assert "head: VLLM_CACHE_ROOT can't be read (Permission denied)" in raised.value.why
    assert "worker: nothing but the log can be read (worker: no answer)" in raised.value.why
