"""What ends a wait, how soon, and whom it blames: both ranks in memory, and time that passes when something sleeps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dspark_deploy.boot.events import Node
from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.rules import Rules
from dspark_deploy.errors import LaunchFailed
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.watch.boot import BootWatch
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock
from tests.samples import container, node_facts

INFO = "INFO 07-18 13:29:28 [module.py:1]"
CAUSE = (
    f"(Worker pid=1) {INFO} ValueError: Free memory on device cuda:0 (104.9/121.63 GiB) on startup is less than "
    "desired GPU memory utilization (0.87, 105.8 GiB)."
)
ECHO = (
    "[rank0]:[W718 13:29:41.1 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=3): Failed to recv, got 0 "
    "bytes. Connection was likely closed. Did the remote server shutdown or crash?"
)
TURN_S = 0.1


class Booting:
    """A pair whose both ranks run, and the watch over them."""

    def __init__(self, *, attached: bool = False, already: tuple[str, ...] = ()) -> None:
        self.clock = FakeClock()
        self.hosts = {node: FakeHost(node_facts(node)) for node in ("head", "worker")}
        self.boot = BootWatch(self.clock, self._load)
        self.loads = 0
        self.waited_s = 0.0
        for node, host in self.hosts.items():
            rank = host.engine_.add(container(node), *already)
            self.boot.start(host, rank, attached=attached)

    def say(self, node: Node, *lines: str) -> None:
        self.clock.sleep(0.001)
        said_s = self.clock.now()
        self.hosts[node].engine_.say(self._id(node), *lines)
        self.until(lambda: lines[-1] in self.boot.ranks[node].tail(1) and self.boot.position(node).heard_s >= said_s)

    def die(self, node: str, *last_words: str, exit_code: int = 1) -> None:
        self.hosts[node].engine_.die(self._id(node), exit_code, *last_words)

    def turn(self) -> None:
        self.boot.turn(self.waited_s)
        if self.boot._loading is not None:
            assert self.boot._loading.done.wait(30)  # no time of this clock passes meanwhile
        self.waited_s += TURN_S
        self.clock.sleep(TURN_S)

    def until(self, condition: Callable[[], bool]) -> None:
        """Let the threads that follow the logs have their turn."""
        for _ in range(2000):
            if condition():
                return
            self.clock.sleep(0)
        raise AssertionError("it never came true")

    def failure(self, within_s: float) -> LaunchFailed:
        """What ends the wait, and that it does so in time."""
        with pytest.raises(LaunchFailed) as raised:
            self.goes_on(within_s)
        return raised.value

    def goes_on(self, seconds: float = 5) -> None:
        for _ in range(int(seconds / TURN_S)):
            self.turn()

    def close(self) -> None:
        self.boot.close()

    def _id(self, node: str) -> str:
        return self.boot.ranks[node].container_id

    def _load(self) -> Rules:
        self.loads += 1
        return bundled_rules()


def long_since(pair: Booting) -> None:
    """The wait lasts, and the signatures are known."""
    pair.goes_on(1)
    assert pair.loads == 1


def test_a_fatal_line_ends_the_wait_within_a_second_and_says_what_to_do() -> None:
    pair = Booting()
    long_since(pair)
    pair.say("worker", CAUSE)
    error = pair.failure(within_s=1)
    assert error.node == "worker"
    assert "F29" in error.message
    assert "104.9/121.63" in error.why
    assert "0.86" in error.remedy


def test_what_was_said_before_the_signatures_were_known_counts() -> None:
    pair = Booting()
    pair.say("worker", CAUSE)
    assert pair.loads == 0, "a wait that is over at once needs no signatures"
    assert "F29" in pair.failure(within_s=1.5).message


def test_a_rank_that_dies_is_told_within_three_seconds_with_its_last_lines() -> None:
    pair = Booting()
    pair.goes_on(2)
    pair.die("worker", "RuntimeError: no luck", exit_code=3)
    error = pair.failure(within_s=3)
    assert error.node == "worker"
    assert "exit code 3" in error.message
    assert "no luck" in error.why


def test_the_echo_is_not_the_cause_whichever_rank_is_heard_first() -> None:
    for first in ("head", "worker"):
        pair = Booting()
        long_since(pair)
        lines = {"head": ECHO, "worker": CAUSE}
        for node in sorted(lines, key=lambda each: each != first):
            pair.die(node, lines[node])
        error = pair.failure(within_s=3)
        assert (error.node, "F29" in error.message) == ("worker", True), first
        assert "head only tells of the other one's end" in error.why


def test_a_rank_that_dies_without_a_word_is_blamed_before_the_one_that_complains_about_it() -> None:
    pair = Booting()
    pair.goes_on(2)
    pair.die("worker", exit_code=137)
    pair.die("head", ECHO)
    error = pair.failure(within_s=3)
    assert error.node == "worker"
    assert "exit code 137" in error.message
    assert "head only tells of the other one's end" in error.why


def test_an_echo_of_a_rank_that_still_runs_is_all_there_is_to_tell() -> None:
    pair = Booting()
    long_since(pair)
    pair.say("head", ECHO)
    error = pair.failure(within_s=2)
    assert error.node == "head"


def test_a_rank_that_is_restarted_or_removed_ends_the_wait() -> None:
    pair = Booting()
    pair.hosts["head"].engine_.restart(pair._id("head"))
    assert "restarted" in pair.failure(within_s=3).message
    pair = Booting()
    pair.hosts["head"].engine_.vanish(pair._id("head"))
    assert "gone" in pair.failure(within_s=3).message


def test_a_boot_that_goes_well_is_never_ended_and_its_figures_are_kept() -> None:
    pair = Booting()
    pair.say("head", f"(EngineCore pid=1) {INFO} GPU KV cache size: 2,493,464 tokens")
    pair.say("worker", f"(Worker_TP1 pid=1) {INFO} Available KV cache memory: 17.69 GiB")
    pair.goes_on()
    pair.say("head", "(APIServer pid=1) INFO:     Application startup complete.")
    pair.goes_on()
    assert pair.boot.figures()["head"]["kv_pool_tokens"] == 2493464
    assert pair.boot.figures()["worker"]["kv_gib"] == 17.69
    assert pair.boot.position("head").phase is Phase.READY
    assert pair.boot.seconds()["head"]["kv"] >= 5


def test_what_a_pair_has_survived_before_it_was_looked_at_does_not_end_it() -> None:
    pair = Booting(attached=True, already=(CAUSE, "(APIServer pid=1) INFO:     Application startup complete."))
    pair.until(lambda: pair.boot.position("head").ready)
    pair.goes_on()
    pair.die("worker")
    pair.failure(within_s=3)


def test_a_log_that_breaks_off_is_followed_anew() -> None:
    pair = Booting()
    pair.say("head", "one")
    for watch in pair.boot.ranks.values():
        assert watch._logs is not None
        watch._logs.close()
    pair.until(lambda: all(watch.silent for watch in pair.boot.ranks.values()))
    pair.goes_on(1)
    pair.say("head", "two")
    assert pair.boot.ranks["head"].tail() == "one\ntwo"
