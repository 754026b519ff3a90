"""The steps of a start, as a value that can be printed, compared and then taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.plan.situation import Situation

HEAD_FIRST = ("head", "worker")
WORKER_FIRST = ("worker", "head")


@dataclass(frozen=True, slots=True)
class PushRelease:
    """Make each of `nodes` keep its half of `release`; all at once, since none waits for another."""

    nodes: tuple[str, ...]
    release: str

    def __str__(self) -> str:
        return f"push release {self.release} to {' and '.join(self.nodes)}"


@dataclass(frozen=True, slots=True)
class GiveKey:
    """Make the head keep the API key that its container is started with. The key itself is in no plan."""

    def __str__(self) -> str:
        return "give the head its API key"


@dataclass(frozen=True, slots=True)
class TakeKey:
    """Remove the API key that `node` keeps: nothing there needs it any more."""

    node: str

    def __str__(self) -> str:
        return f"take the API key off the {self.node}"


@dataclass(frozen=True, slots=True)
class StopRank:
    """End `container` on `node`, confirm that it is gone, remove it."""

    node: str
    container: Container
    release: str  # what it ran; empty where its label is gone

    def __str__(self) -> str:
        return f"stop {self.container.name} on {self.node} (release {self.release or 'unknown'})"


@dataclass(frozen=True, slots=True)
class AwaitMemory:
    """Wait until each node has `utilization` of its memory available: what a stopped rank held comes back late."""

    utilization: float

    def __str__(self) -> str:
        return "wait until what the old ranks held is free"


@dataclass(frozen=True, slots=True)
class StartRank:
    """Have `node` run its half of `release`."""

    node: str
    release: str

    def __str__(self) -> str:
        return f"start the {self.node}"


@dataclass(frozen=True, slots=True)
class AwaitRendezvous:
    """Wait until the rank on `node` waits for its peer: a running container is not enough."""

    node: str

    def __str__(self) -> str:
        return f"wait until the {self.node} is at the rendezvous"


@dataclass(frozen=True, slots=True)
class AwaitApi:
    """Wait until the head's API answers with the planned model, both ranks watched."""

    def __str__(self) -> str:
        return "wait until the API answers, both ranks watched"


@dataclass(frozen=True, slots=True)
class Prove:
    """Have the pair generate text, short and beyond one block."""

    def __str__(self) -> str:
        return "prove it with two requests"


KeyStep = GiveKey | TakeKey
Step = PushRelease | GiveKey | TakeKey | StopRank | AwaitMemory | StartRank | AwaitRendezvous | AwaitApi | Prove


def plan_start(release: str) -> tuple[Step, ...]:
    """Start a release that both nodes keep.

    The head waits for its peer with a deadline, so the worker has to be at the rendezvous by then; starting both at
    once has left pairs waiting for each other (Anemll/dspark-vllm-gx10 README, v0.1.1).
    """
    worker, head = WORKER_FIRST
    return (
        StartRank(worker, release),
        AwaitRendezvous(worker),
        StartRank(head, release),
        AwaitApi(),
        Prove(),
    )


def plan_return(release: str, utilization: float | None) -> tuple[Step, ...]:
    """Start what served before, where a start has failed: once the memory that it had is there again."""
    memory = (AwaitMemory(utilization),) if utilization is not None else ()
    return (*memory, *plan_start(release))


def plan_stop(situation: Situation) -> tuple[StopRank, ...]:
    """End everything that carries the pair's label, dead containers included: the head first, then the worker."""
    return tuple(_stops(situation))


def plan_up(
    release: str,
    kept: Mapping[str, tuple[str, ...]],
    situation: Situation,
    *,
    as_it_runs: bool,
    utilization: float | None = None,
    keys: tuple[KeyStep, ...] = (),
) -> tuple[Step, ...]:
    """What brings the pair from `situation` to serving `release`. `kept` are the releases each node holds whole.

    `as_it_runs` says that what runs is this release on the image that the tag names now, and not broken: then
    nothing is changed, the wait and the proof alone remain. `utilization` of each node's memory has to be there once a
    running rank was stopped; None asks for none. `keys` bring the nodes' API key to what the release needs, once what
    ran with another one has been stopped: whatever goes wrong then is undone with it.
    """
    if as_it_runs:
        return (AwaitApi(), Prove())
    lacking = tuple(node for node in HEAD_FIRST if release not in kept[node])
    push = (PushRelease(lacking, release),) if lacking else ()
    ran = any(situation.alive(node) for node in HEAD_FIRST)
    memory = (AwaitMemory(utilization),) if ran and utilization is not None else ()
    return (*push, *plan_stop(situation), *keys, *memory, *plan_start(release))


def changes(steps: tuple[Step, ...]) -> bool:
    """Whether any of `steps` would change a node."""
    return any(isinstance(step, PushRelease | GiveKey | TakeKey | StopRank | StartRank) for step in steps)


def _stops(situation: Situation) -> Iterator[StopRank]:
    for node in HEAD_FIRST:
        for container in situation.own.get(node, ()):
            yield StopRank(node, container, container.labels.get(labels.RELEASE, ""))
