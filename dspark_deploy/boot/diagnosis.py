"""Why a boot failed: one answer first, out of what both ranks' logs say.

When one rank dies, the other one says so, often louder and longer. What tells a cause comes before what is its symptom,
and both before the echo of the other rank's end; of two causes the one of the earlier phase comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from dspark_deploy.boot.events import Node, Severity, Value
from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.record import Boot, Complaint, Sighting
from dspark_deploy.boot.relations import Logs, related
from dspark_deploy.boot.signatures import Role, Signature, phase_named

Outcome = Literal["failed", "ready", "stopped", "unfinished", "no-boot"]

_ORDER: Mapping[Role, int] = {"cause": 0, "symptom": 1, "echo": 2}


@dataclass(frozen=True, slots=True)
class Answer:
    """One thing that was found, in words."""

    failure: str | None  # F01...; None: something ended, and no known line says why
    also: tuple[str, ...]  # failures that print the same
    signature: str
    severity: Severity
    role: Role
    node: Node | None
    phase: str  # in which it was said
    line: int  # in that node's log, from 1
    count: int
    text: str  # the line, shortened, secrets masked
    means: str
    remedy: str


@dataclass(frozen=True, slots=True)
class RankBoot:
    """How far one rank came. `seconds` are by the log's own stamps, phase by phase, where it has them."""

    node: Node | None
    attempts: int  # boots of this rank in the log
    phase: str | None
    percent: int | None  # of that phase's progress bar, where it has one
    ready: bool
    figures: Mapping[str, Value]
    seconds: Mapping[str, float]
    unknown_variables: tuple[str, ...]
    complaints: tuple[Complaint, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`failures` holds the answer first, then what else is fatal; `warnings` what makes it slow or unsafe."""

    outcome: Outcome
    failures: tuple[Answer, ...]
    warnings: tuple[Answer, ...]
    ranks: tuple[RankBoot, ...]

    @property
    def answer(self) -> Answer | None:
        """The cause, as far as the logs tell one."""
        return self.failures[0] if self.failures else None


@dataclass(frozen=True, slots=True)
class _Candidate:
    boot: Boot
    sighting: Sighting
    signature: Signature

    @property
    def order(self) -> tuple[int, int, int, float, int]:
        stamp_s = self.sighting.stamp_s
        return (
            _ORDER[self.signature.role],
            0 if self.signature.relation else 1,
            int(self.sighting.phase),
            float("inf") if stamp_s is None else stamp_s,
            self.sighting.line,
        )


def diagnose(boots: Sequence[Boot], signatures: Mapping[str, Signature]) -> Diagnosis:
    """Judge what one or two logs hold. `boots` of all of them, each log's in order."""
    by_node: dict[Node | None, list[Boot]] = {}
    for boot in boots:
        by_node.setdefault(boot.node, []).append(boot)
    if len(by_node) > 1 and None in by_node and not any(_tells(boot) for boot in by_node[None]):
        del by_node[None]  # the first lines of a log, before it says which rank it is
    counting = [_counting(each, signatures) for each in by_node.values()]
    earlier = [boot for each in by_node.values() for boot in each if not any(boot is one for one in counting)]
    fatal = frozenset(name for name, each in signatures.items() if _fatal(each))
    causes = frozenset(name for name in fatal if signatures[name].role == "cause")
    found = [*_sighted(counting, signatures), *_related(Logs(counting, earlier, causes, fatal), signatures)]
    failures = sorted((each for each in found if _fatal(each.signature)), key=lambda each: each.order)
    warnings = sorted((each for each in found if each.signature.severity == "costly"), key=lambda each: each.order)
    ranks = tuple(_rank(boot, len(by_node[boot.node])) for boot in counting)
    return Diagnosis(_outcome(counting, failures), tuple(map(_answer, failures)), tuple(map(_answer, warnings)), ranks)


def _counting(boots: Sequence[Boot], signatures: Mapping[str, Signature]) -> Boot:
    """The boot that counts of one rank: the last, or, while that only tries again, the last that failed."""

    def failed(boot: Boot) -> bool:
        return any(_fatal(each.signature) for each in _sighted([boot], signatures))

    last = boots[-1]
    if last.ready or failed(last):
        return last
    return next((boot for boot in reversed(boots) if failed(boot)), last)


def _sighted(boots: Sequence[Boot], signatures: Mapping[str, Signature]) -> Iterator[_Candidate]:
    """What stands, leaving out what was followed by better, and the echo of an end that somebody asked for."""
    served = any(boot.phase is not None and boot.phase >= Phase.READY for boot in boots)
    stopped = any(_ended_on_request(boot, signatures) for boot in boots)
    for boot in boots:
        for sighting in boot.sightings.values():
            signature = signatures[sighting.signature]
            if sighting.resolved or (stopped and signature.role == "echo"):
                continue
            if served and _waits_for_ready(signature) and sighting.phase < Phase.READY:
                continue  # the head serves, so this rank survived it too
            yield _Candidate(boot, sighting, signature)


def _ended_on_request(boot: Boot, signatures: Mapping[str, Signature]) -> bool:
    """It served, was asked to end, and nothing fatal is known of it."""
    fatal = any(
        _fatal(signatures[each.signature]) and not each.resolved and signatures[each.signature].role != "echo"
        for each in boot.sightings.values()
    )
    return boot.stopped and boot.ready and not fatal and "engine-died" not in boot.sightings


def _waits_for_ready(signature: Signature) -> bool:
    follow = signature.followed_by
    return follow is not None and follow.phase is not None and phase_named(follow.phase) == Phase.READY


def _related(logs: Logs, signatures: Mapping[str, Signature]) -> Iterator[_Candidate]:
    for signature in signatures.values():
        if signature.relation is None:
            continue
        holds = related(signature.relation, logs)
        if holds is not None:
            boot = holds.boot
            phase = boot.phase if boot.phase is not None else Phase.PREPARATION
            own = Sighting(signature.id, boot.last_line, boot.last_line, 1, "", phase, None, {}, resolved=False)
            yield _Candidate(boot, holds.sighting or own, signature)


def _outcome(boots: Sequence[Boot], failures: Sequence[_Candidate]) -> Outcome:
    if any(each.signature.severity == "fatal" or each.boot.ready for each in failures):
        return "failed"
    if any(boot.ready for boot in boots):
        return "ready"
    if any(boot.stopped for boot in boots):
        return "stopped"
    if failures or any(boot.phase is not None for boot in boots):
        return "unfinished"
    return "no-boot"


def _answer(candidate: _Candidate) -> Answer:
    signature, sighting, boot = candidate.signature, candidate.sighting, candidate.boot
    values = dict(sighting.values)
    if "name" in values and values["name"] in boot.unknown_variables and signature.regex:
        named = [each for each in boot.unknown_variables if signature.regex.search(f"detected: {each}")]
        values["name"] = ", ".join(named)
    means, remedy = signature.explained(values)
    return Answer(
        failure=signature.failure,
        also=signature.also,
        signature=signature.id,
        severity=signature.severity,
        role=signature.role,
        node=boot.node,
        phase=sighting.phase.label,
        line=sighting.line,
        count=sighting.count,
        text=sighting.text,
        means=means,
        remedy=remedy,
    )


def _rank(boot: Boot, attempts: int) -> RankBoot:
    return RankBoot(
        node=boot.node,
        attempts=attempts,
        phase=boot.phase.label if boot.phase is not None else None,
        percent=boot.percent,
        ready=boot.ready,
        figures=boot.figures,
        seconds=phase_seconds(boot),
        unknown_variables=boot.unknown_variables,
        complaints=boot.complaints,
    )


def phase_seconds(boot: Boot) -> dict[str, float]:
    """How long each phase took by the log's own stamps; the last one is still open. Empty without stamps."""
    stamped = [(phase, entry.stamp_s) for phase, entry in boot.entered.items() if entry.stamp_s is not None]
    return {phase.label: after - before for (phase, before), (_, after) in pairwise(stamped) if after >= before}


def _tells(boot: Boot) -> bool:
    return boot.phase is not None or bool(boot.sightings)


def _fatal(signature: Signature) -> bool:
    return signature.severity in {"fatal", "fatal-unless-followed-by"}
