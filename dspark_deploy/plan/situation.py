"""What runs now: the pair's containers, and the one word for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container, NodeFacts

ALIVE = ("running", "restarting", "paused")


class State(StrEnum):
    """The pair's state in one word."""

    SERVING = "serving"  # both run, same release, something is generated when asked
    BOOTING = "booting"
    SPLIT = "split"  # one rank runs
    MIXED = "mixed"  # both run, different releases
    WEDGED = "wedged"  # both run, the API answers, nothing is generated while no token counter moves
    DOWN = "down"
    UNKNOWN = "unknown"  # a node can't be reached


@dataclass(frozen=True, slots=True)
class Situation:
    """The pair's own containers by node, and those that stand in its way."""

    own: Mapping[str, tuple[Container, ...]]  # every container that carries the pair's label, dead ones too
    foreign: Mapping[str, tuple[Container, ...]]  # in the compose project of that name, without the label

    def alive(self, node: str) -> Container | None:
        """The rank that runs on `node`, if any."""
        return next((container for container in self.own.get(node, ()) if container.state in ALIVE), None)

    @property
    def anything(self) -> bool:
        """Whether any node holds a container of the pair, dead ones included."""
        return any(self.own.values())

    @property
    def release(self) -> str | None:
        """The release that both ranks run, or None."""
        head, worker = self.alive("head"), self.alive("worker")
        if head is None or worker is None:
            return None
        release = head.labels.get(labels.RELEASE)
        return release if release == worker.labels.get(labels.RELEASE) else None

    @property
    def utilization(self) -> float | None:
        """The largest share of a node's memory that a rank which runs was given; None where none of them says."""
        alive = [self.alive(node) for node in self.own]
        shares = [rank.gpu_memory_utilization for rank in alive if rank is not None]
        return max((share for share in shares if share is not None), default=None)


def read_situation(pair: str, facts: Mapping[str, NodeFacts]) -> Situation:
    """Each node's containers as its probe saw them."""
    return sort_containers(pair, {node: known.containers for node, known in facts.items()})


def sort_containers(pair: str, containers: Mapping[str, tuple[Container, ...]]) -> Situation:
    """Each node's containers as the pair's own and foreign ones, by label only."""
    own: dict[str, tuple[Container, ...]] = {}
    foreign: dict[str, tuple[Container, ...]] = {}
    for node, found in containers.items():
        own[node] = tuple(each for each in found if each.labels.get(labels.PAIR) == pair)
        foreign[node] = tuple(each for each in found if each.labels.get(labels.PAIR) != pair)
    return Situation(own, foreign)


def state_of_containers(situation: Situation) -> State:
    """What containers alone can tell: a pair that runs whole is BOOTING until its API proves more."""
    head, worker = situation.alive("head"), situation.alive("worker")
    if head is None and worker is None:
        return State.DOWN
    if head is None or worker is None:
        return State.SPLIT
    return State.BOOTING if situation.release else State.MIXED
