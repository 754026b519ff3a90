"""The pair's word, from containers alone."""

from __future__ import annotations

import pytest

from dspark_deploy.facts.node import Container
from dspark_deploy.plan.situation import State, read_situation, state_of_containers
from tests.samples import PAIR, container, pair_facts


def situation_of(head: tuple[Container, ...], worker: tuple[Container, ...]) -> State:
    facts = pair_facts(head={"containers": head}, worker={"containers": worker})
    return state_of_containers(read_situation(PAIR, facts))


@pytest.mark.parametrize(
    ("head", "worker", "state"),
    [
        ((), (), State.DOWN),
        ((container("head", state="exited"),), (), State.DOWN),
        ((container("head"),), (), State.SPLIT),
        ((container("head", state="exited"),), (container("worker"),), State.SPLIT),
        ((container("head", "a"),), (container("worker", "b"),), State.MIXED),
        ((container("head", "a"),), (container("worker", "a"),), State.BOOTING),
        ((container("head", state="restarting"),), (container("worker"),), State.BOOTING),
    ],
)
def test_containers_tell_the_word(head: tuple[Container, ...], worker: tuple[Container, ...], state: State) -> None:
    assert situation_of(head, worker) == state


def test_a_container_without_the_pairs_label_is_foreign() -> None:
    stranger = container("head", labels={"com.docker.compose.project": PAIR})
    situation = read_situation(PAIR, pair_facts(head={"containers": (stranger,)}))
    assert situation.foreign["head"] == (stranger,)
    assert situation.own["head"] == ()


def test_the_release_is_known_only_when_both_ranks_run_the_same() -> None:
    same = read_situation(
        PAIR, pair_facts(head={"containers": (container("head"),)}, worker={"containers": (container("worker"),)})
    )
    half = read_situation(PAIR, pair_facts(head={"containers": (container("head"),)}))
    assert same.release == "0123456789ab"
    assert half.release is None
