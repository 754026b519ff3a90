"""What flows return: plain values that become text or JSON in cli/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dspark_deploy.boot.diagnosis import Answer
from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.facts.patches import PatchOutcome
from dspark_deploy.facts.recall import GpuInside, HashedOnce
from dspark_deploy.plan.situation import Situation, State
from dspark_deploy.plan.trouble import Trouble
from dspark_deploy.watch.generation import Generation
from dspark_deploy.watch.metrics import Load

NUMBERS = {"head": 0, "worker": 1}


@dataclass(frozen=True, slots=True)
class RankReport:
    """One rank as its node shows it. `state` is docker's word, `absent` or `unreachable`."""

    node: str
    rank: int
    state: str
    container: str | None = None
    started_at: str | None = None
    restarts: int = 0
    exit_code: int | None = None
    release: str | None = None
    detail: str = ""  # why, where the state needs a reason
    finished_at: str | None = None  # of one that ended
    uptime_s: float | None = None  # by the node's own clock; None: it does not run, or nobody asked
    gpu: GpuInside | None = None  # None: nobody asked
    image_as_tagged: bool | None = None  # it runs what the release's tag names on that node now; None: can't be told
    cache: HashedOnce | None = None  # when the model was last hashed there; None: never, or nobody asked
    good_at: str | None = None  # when the pair last came up well, as that node remembers it


@dataclass(frozen=True, slots=True)
class Detached:
    """A run that left the pair to boot on: since when, and who had begun it."""

    at: str
    who: str


@dataclass(frozen=True, slots=True)
class PairReport:
    """The pair: its word, what it serves, and both ranks."""

    pair: str
    state: State
    profile: str | None
    family: str | None
    release: str | None
    base_url: str | None
    ranks: tuple[RankReport, ...]
    served_name: str | None = None
    max_model_len: int | None = None
    keyed: bool = False  # the API asks its clients for a key
    detail: str = ""  # one sentence on why this word, and what to type
    answers_from_here: bool | None = None  # None: not tried
    changed: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)  # phase -> seconds, in order
    pushed_bytes: int = 0
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()  # checks that failed and were let pass on request: `id: message`
    detached: Detached | None = None  # whose boot this is, where a run left it
    owed: tuple[str, ...] = ()  # nodes where an earlier run could not confirm that its rank was stopped
    record: str | None = None  # where the run's record lies on the controller
    patches: Mapping[str, tuple[PatchOutcome, ...]] = field(default_factory=dict)  # by node; empty: there are none


@dataclass(frozen=True, slots=True)
class StatusReport(PairReport):
    """The same, looked at closely: what it does now, and what is wrong."""

    at: str = ""  # when it was looked at; RFC 3339, this machine's clock
    troubles: tuple[Trouble, ...] = ()
    generation: Generation | None = None  # None: it was not asked
    load: Load | None = None
    version: str | None = None  # of the server
    stand_in: str | None = None  # what a stand-in says of itself; None: a real engine, or it was not asked
    costly: tuple[Answer, ...] = ()  # what the ranks' logs tell of that makes it slow or unsafe
    agreed_at: str | None = None  # when these very ranks were last found to agree (`parity`); None: never
    differed_at: str | None = None  # when they were found to differ since
    untold: Mapping[str, str] = field(default_factory=dict)  # what could not be read -> why


def rank_reports(situation: Situation, unreachable: Mapping[str, str]) -> tuple[RankReport, ...]:
    """Both ranks, head first. `unreachable` is node -> reason."""
    return tuple(_rank(node, situation, unreachable) for node in NUMBERS)


def _rank(node: str, situation: Situation, unreachable: Mapping[str, str]) -> RankReport:
    number = NUMBERS[node]
    if node in unreachable:
        return RankReport(node, number, "unreachable", detail=unreachable[node])
    container = situation.alive(node) or next(iter(situation.own.get(node, ())), None)
    if container is None:
        return RankReport(node, number, "absent")
    return _of(node, number, container)


def _of(node: str, number: int, container: Container) -> RankReport:
    return RankReport(
        node=node,
        rank=number,
        state=container.state,
        container=container.name,
        started_at=container.started_at,
        restarts=container.restarts,
        exit_code=container.exit_code if container.state == "exited" else None,
        release=container.labels.get(labels.RELEASE),
        detail="killed for lack of memory" if container.oom_killed else "",
        finished_at=container.finished_at,
    )
