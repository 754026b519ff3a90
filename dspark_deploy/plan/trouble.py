"""What is wrong with a pair that does not serve: which rank, since when, from which facts, and what to type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dspark_deploy.errors import DsparkError
from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.plan.situation import Situation, State

NODES = ("head", "worker")


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is wrong. `since` is RFC 3339 by that node's clock; None where nothing tells it."""

    node: str | None  # None: no single rank is concerned
    since: str | None
    facts: tuple[str, ...]
    remedy: str


@dataclass(frozen=True, slots=True)
class Silence:
    """A pair that answers and generates nothing, as far as its API and its logs tell."""

    detail: str  # what it did when it was asked
    busy_at: str | None  # the last line of the head's log that tells of tokens
    running: int | None  # requests, by its own counters; None: they can't be read
    waiting: int | None
    named: tuple[str, ...]  # failures that its logs name


def troubles_of(
    state: State, situation: Situation, unreachable: Mapping[str, DsparkError], silence: Silence | None
) -> tuple[Trouble, ...]:
    """What stands in the way of `state` being serving. Nothing is said of a pair that serves or boots."""
    match state:
        case State.UNKNOWN:
            return tuple(_unreached(node, error) for node, error in unreachable.items())
        case State.SPLIT:
            return tuple(_split(situation))
        case State.MIXED:
            return (_mixed(situation),)
        case State.WEDGED:
            return (_wedged(situation, silence),)
        case State.DOWN:
            return tuple(_ended(situation))
        case _:
            return ()


def _unreached(node: str, error: DsparkError) -> Trouble:
    """Since when can't be told: nobody looked before."""
    return Trouble(node, None, tuple(part for part in (error.message, *error.why.splitlines()) if part), error.remedy)


def _split(situation: Situation) -> Iterator[Trouble]:
    gone = next(node for node in NODES if situation.alive(node) is None)
    other = next(node for node in NODES if node != gone)
    lives = situation.alive(other)
    dead = _last_ended(situation, gone)
    alone = (
        () if lives is None else (f"the {other}'s rank runs since {_time(lives.started_at)}, and can't go on alone",)
    )
    if dead is None:
        facts = (f"the {gone} has no container of the pair: it was removed, or never started", *alone)
        yield Trouble(gone, None, facts, "`dspark up` starts both anew, `dspark down` ends what runs")
        return
    facts = (_how_it_ended(gone, dead), *alone)
    yield Trouble(gone, dead.finished_at, facts, f"`dspark logs {gone} --tail 50` shows why; `dspark up` restarts both")


def _mixed(situation: Situation) -> Trouble:
    """The one that was started last brought it about."""
    ranks = {node: rank for node in NODES if (rank := situation.alive(node)) is not None}
    facts = tuple(
        f"the {node} runs release {rank.labels.get(labels.RELEASE, '?')}"
        f" (profile {rank.labels.get(labels.PROFILE, '?')}) since {_time(rank.started_at)}"
        for node, rank in ranks.items()
    )
    newest = max(ranks, key=lambda node: ranks[node].started_at or "")
    remedy = "`dspark up -p PROFILE` brings both to one release; `dspark history` shows who started what"
    return Trouble(newest, ranks[newest].started_at, facts, remedy)


def _wedged(situation: Situation, silence: Silence | None) -> Trouble:
    if silence is None:
        return Trouble(None, None, (), "`dspark logs` shows why, `dspark up` restarts both")
    facts = [silence.detail]
    if silence.running is not None:
        facts.append(f"by its own counters {silence.running} requests are running and {silence.waiting} waiting")
    if silence.busy_at is not None:
        facts.append(f"the head's log tells of tokens for the last time at {_time(silence.busy_at)}")
    head = situation.alive("head")
    if silence.busy_at is None and head is not None:
        facts.append(f"the head's log tells of no token since its start at {_time(head.started_at)}")
    facts += silence.named
    remedy = "`dspark logs --since 10m` shows why; `dspark up` restarts both, and ends the requests that hang"
    return Trouble(None, silence.busy_at, tuple(facts), remedy)


def _ended(situation: Situation) -> Iterator[Trouble]:
    """Ranks that ended by themselves: `down` leaves no container."""
    for node in NODES:
        dead = _last_ended(situation, node)
        if dead is not None:
            facts = (_how_it_ended(node, dead),)
            yield Trouble(node, dead.finished_at, facts, f"`dspark logs {node} --tail 50` shows why")


def _last_ended(situation: Situation, node: str) -> Container | None:
    return max(situation.own.get(node, ()), key=lambda each: each.finished_at or "", default=None)


def _how_it_ended(node: str, dead: Container) -> str:
    if dead.started_at is None:
        return f"the {node}'s container {dead.name} was made and never started"
    killed = ", killed for lack of memory" if dead.oom_killed else ""
    code = "" if dead.exit_code is None else f" with exit code {dead.exit_code}"
    when = f" at {_time(dead.finished_at)}" if dead.finished_at else ""
    return f"the {node}'s rank ended{when}{code}{killed}, after it was started at {_time(dead.started_at)}"


def _time(stamp: str | None) -> str:
    return f"{stamp[:19]}Z" if stamp else "a time that is not known"
