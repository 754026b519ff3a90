"""The steps of a start and of a stop, compared whole."""

from __future__ import annotations

from dspark_deploy.plan.launch import (
    AwaitApi,
    AwaitMemory,
    AwaitRendezvous,
    Prove,
    PushRelease,
    StartRank,
    StopRank,
    changes,
    plan_return,
    plan_start,
    plan_stop,
    plan_up,
)
from dspark_deploy.plan.situation import Situation
from tests.samples import container

NOTHING = Situation(own={"head": (), "worker": ()}, foreign={"head": (), "worker": ()})
NEW = "aaaaaaaaaaaa"
OLD = "0123456789ab"


def running(release: str = OLD) -> Situation:
    return Situation(
        own={node: (container(node, release),) for node in ("head", "worker")}, foreign={"head": (), "worker": ()}
    )


def test_the_worker_is_at_the_rendezvous_before_the_head_starts() -> None:
    assert plan_start(NEW) == (
        StartRank("worker", NEW),
        AwaitRendezvous("worker"),
        StartRank("head", NEW),
        AwaitApi(),
        Prove(),
    )


def test_on_empty_nodes_both_halves_are_pushed_at_once() -> None:
    steps = plan_up(NEW, {"head": (), "worker": ()}, NOTHING, as_it_runs=False)
    assert steps == (PushRelease(("head", "worker"), NEW), *plan_start(NEW))


def test_only_a_node_that_lacks_the_release_is_sent_it() -> None:
    steps = plan_up(NEW, {"head": (NEW,), "worker": ()}, NOTHING, as_it_runs=False)
    assert steps[0] == PushRelease(("worker",), NEW)


def test_a_release_that_both_nodes_keep_is_not_pushed() -> None:
    steps = plan_up(NEW, {"head": (NEW,), "worker": (NEW,)}, NOTHING, as_it_runs=False)
    assert steps == plan_start(NEW)


def test_an_older_release_is_stopped_after_the_push_head_first() -> None:
    steps = plan_up(NEW, {"head": (), "worker": ()}, running(), as_it_runs=False)
    assert steps[:3] == (
        PushRelease(("head", "worker"), NEW),
        StopRank("head", container("head"), OLD),
        StopRank("worker", container("worker"), OLD),
    )


def test_dead_containers_are_cleared_too() -> None:
    dead = container("worker", state="exited", exit_code=1)
    assert plan_stop(Situation(own={"head": (), "worker": (dead,)}, foreign={})) == (StopRank("worker", dead, OLD),)


def test_a_pair_that_runs_as_wanted_is_only_asked_and_nothing_of_that_changes_a_node() -> None:
    steps = plan_up(OLD, {"head": (OLD,), "worker": (OLD,)}, running(), as_it_runs=True)
    assert steps == (AwaitApi(), Prove())
    assert not changes(steps)


def test_a_start_changes_nodes() -> None:
    assert changes(plan_start(NEW))


def test_a_return_waits_for_the_memory_that_the_release_had() -> None:
    assert plan_return("abc", 0.85) == (AwaitMemory(0.85), *plan_start("abc"))
    assert plan_return("abc", None) == plan_start("abc")
