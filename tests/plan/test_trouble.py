"""What is said of a pair that does not serve."""

from __future__ import annotations

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.plan.situation import State, sort_containers
from dspark_deploy.plan.trouble import Silence, Trouble, troubles_of
from tests.samples import PAIR, container

ENDED = "2026-09-01T11:00:00.000000000Z"
ENDING = (
    "the worker's rank ended at 2026-09-01T11:00:00Z with exit code 137, killed for lack of memory, "
    "after it was started at 2026-09-01T10:00:00Z"
)


def test_of_a_split_pair_the_rank_that_ended_is_named_with_its_end() -> None:
    dead = container("worker", state="exited", exit_code=137, oom_killed=True, finished_at=ENDED)
    situation = sort_containers(PAIR, {"head": (container("head"),), "worker": (dead,)})
    (trouble,) = troubles_of(State.SPLIT, situation, {}, None)
    assert (trouble.node, trouble.since) == ("worker", ENDED)
    assert trouble.facts == (
        ENDING,
        "the head's rank runs since 2026-09-01T10:00:00Z, and can't go on alone",
    )
    assert "`dspark logs worker" in trouble.remedy
    assert "`dspark up`" in trouble.remedy


def test_of_a_rank_without_a_container_it_is_said_that_nothing_tells_when() -> None:
    situation = sort_containers(PAIR, {"head": (), "worker": (container("worker"),)})
    (trouble,) = troubles_of(State.SPLIT, situation, {}, None)
    assert (trouble.node, trouble.since) == ("head", None)
    assert "was removed, or never started" in trouble.facts[0]


def test_of_a_mixed_pair_the_rank_that_was_started_last_is_named_and_both_releases() -> None:
    late = container("worker", "fedcba987654", started_at="2026-09-01T12:00:00.000000000Z")
    situation = sort_containers(PAIR, {"head": (container("head"),), "worker": (late,)})
    (trouble,) = troubles_of(State.MIXED, situation, {}, None)
    assert (trouble.node, trouble.since) == ("worker", late.started_at)
    assert [fact.split(" since")[0] for fact in trouble.facts] == [
        "the head runs release 0123456789ab (profile agent-1m)",
        "the worker runs release fedcba987654 (profile agent-1m)",
    ]


def test_of_a_wedged_pair_the_api_s_silence_its_counters_and_its_logs_are_the_facts() -> None:
    situation = sort_containers(PAIR, {node: (container(node),) for node in ("head", "worker")})
    silence = Silence("asked for one token: no answer within 15 s", ENDED, 2, 1, ("F112 on the head: a rank hangs",))
    (trouble,) = troubles_of(State.WEDGED, situation, {}, silence)
    assert (trouble.node, trouble.since) == (None, ENDED)
    assert trouble.facts == (
        "asked for one token: no answer within 15 s",
        "by its own counters 2 requests are running and 1 waiting",
        "the head's log tells of tokens for the last time at 2026-09-01T11:00:00Z",
        "F112 on the head: a rank hangs",
    )


def test_a_node_that_can_not_be_reached_says_why_and_what_to_do_itself() -> None:
    error = NodeUnreachable(
        "worker: its host key is not known", why="no line\nfor it", remedy="accept it", node="worker"
    )
    situation = sort_containers(PAIR, {"head": (container("head"),)})
    assert troubles_of(State.UNKNOWN, situation, {"worker": error}, None) == (
        Trouble("worker", None, ("worker: its host key is not known", "no line", "for it"), "accept it"),
    )


def test_of_a_pair_that_is_down_only_ranks_that_ended_by_themselves_are_told() -> None:
    assert troubles_of(State.DOWN, sort_containers(PAIR, {"head": (), "worker": ()}), {}, None) == ()
    dead = container("head", state="exited", exit_code=1, finished_at=ENDED)
    unstarted = container("worker", state="created", started_at=None)
    found = troubles_of(State.DOWN, sort_containers(PAIR, {"head": (dead,), "worker": (unstarted,)}), {}, None)
    assert [each.node for each in found] == ["head", "worker"]
    assert "was made and never started" in found[1].facts[0]


def test_nothing_is_said_of_a_pair_that_serves_or_boots() -> None:
    situation = sort_containers(PAIR, {node: (container(node),) for node in ("head", "worker")})
    assert troubles_of(State.SERVING, situation, {}, None) == troubles_of(State.BOOTING, situation, {}, None) == ()
