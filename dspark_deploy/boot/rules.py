"""Everything that is looked for in a log, compiled into one automaton."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dspark_deploy.boot.figures import BARS, READINGS, Reading
from dspark_deploy.boot.matcher import Matcher
from dspark_deploy.boot.phases import BEGINNINGS, MARKERS, Phase
from dspark_deploy.boot.signatures import Signature


@dataclass(frozen=True, slots=True)
class Marker:
    """Opens a phase. `begins`: after the rendezvous it opens another boot instead."""

    phase: Phase
    begins: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """Stands in a progress bar."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Names a variable that is not registered."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """Any error at all: kept for the case that no signature knows it."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody asked the engine to end."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Makes these signatures harmless."""

    signatures: tuple[str, ...]


Rule: TypeAlias = Marker | Reading | Bar | Variable | Complaint | Stopped | Follow | Signature

_COMPLAINTS = ("Error: ", "Exception: ", "FATAL: ", "error: ")
_STOPS = (
    "API server: shutdown triggered",
    "EngineCore: trigger received signal=",
    "Parent process exited, terminating",
)


@dataclass(frozen=True)
class Rules:
    """What each literal means, by its index in the automaton."""

    matcher: Matcher
    table: tuple[tuple[Rule, ...], ...]
    literals: tuple[str, ...]
    signatures: Mapping[str, Signature]


def compile_rules(signatures: Iterable[Signature]) -> Rules:
    """All markers, figures and signatures as one automaton. Takes a few milliseconds."""
    known = {each.id: each for each in signatures}
    meanings: dict[str, list[Rule]] = {}

    def add(literal: str, rule: Rule) -> None:
        meanings.setdefault(literal, []).append(rule)

    for literal, phase in MARKERS:
        add(literal, Marker(phase, literal in BEGINNINGS))
    for literal in BARS:
        add(literal, Bar())
    for reading in READINGS:
        add(reading.literal, reading)
    add("environment variable detected: ", Variable())
    for literal in _COMPLAINTS:
        add(literal, Complaint())
    for literal in _STOPS:
        add(literal, Stopped())
    for literal, names in _follows(known.values()).items():
        add(literal, Follow(names))
    for signature in known.values():
        for literal in signature.text:
            add(literal, signature)
    literals = tuple(meanings)
    matcher = Matcher([literal.encode() for literal in literals])
    return Rules(matcher, tuple(tuple(rules) for rules in meanings.values()), literals, known)


def _follows(signatures: Iterable[Signature]) -> Mapping[str, tuple[str, ...]]:
    """Literal -> the signatures that it makes harmless."""
    names: dict[str, list[str]] = {}
    for signature in signatures:
        literals: Sequence[str] = signature.followed_by.text if signature.followed_by else ()
        for literal in literals:
            names.setdefault(literal, []).append(signature.id)
    return {literal: tuple(ids) for literal, ids in names.items()}
