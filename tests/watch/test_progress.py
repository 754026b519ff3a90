"""How far a boot is, by what earlier boots took."""

from __future__ import annotations

from dspark_deploy.boot.estimate import published
from dspark_deploy.boot.phases import Phase
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.plan.journal import Entry
from dspark_deploy.watch.boot import BootWatch
from dspark_deploy.watch.progress import Expectation, progress_of
from tests.fakes import FakeHost
from tests.flow.stand import MARKER, FakeClock
from tests.samples import container, node_facts


def entry(weights_s: float, profile: str = "agent-1m", outcome: str = "serving") -> Entry:
    phases = {"head": {"weights": weights_s, "no-such-phase": 1.0}}
    return Entry("r", "t", "w", "up", outcome, profile=profile, phases=phases)


def test_times_are_those_of_earlier_runs_of_the_same_profile() -> None:
    history = [entry(500), entry(520), entry(90), entry(9, profile="coding-1m"), entry(9, outcome="launch-failed")]
    learned = Expectation(history, "agent-1m")
    assert learned.learned_from == 3
    assert learned.of("head")[Phase.WEIGHTS] == 500
    assert learned.of("worker") == published("worker")


def test_without_earlier_runs_they_are_the_published_ones() -> None:
    assert Expectation([Entry("r", "t", "w", "up", "serving", profile="agent-1m")], "agent-1m").learned_from == 0
    assert Expectation().of("head") == published("head")


def test_each_rank_has_its_phase_and_the_pair_what_the_slower_one_has_left() -> None:
    clock, worker = FakeClock(), FakeHost(node_facts("worker"))
    boot = BootWatch(clock, bundled_rules)
    rank = worker.engine_.add(container("worker"))
    watch = boot.start(worker, rank, marker=MARKER)
    worker.engine_.say(rank.id, MARKER)
    assert watch.marked.wait(5)
    clock._now += 20
    progress = progress_of(boot, Expectation(), clock.now())
    (only,) = progress.ranks
    assert (only.node, only.phase, only.title) == ("worker", "rendezvous", "waiting for the other rank")
    assert 20 <= only.quiet_s < 21
    assert progress.left_s == only.left_s > 200
    boot.close()
