"""What the reader of a boot log says, as it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dspark_deploy.boot.phases import Phase

Node: TypeAlias = Literal["head", "worker"]
Severity: TypeAlias = Literal["fatal", "fatal-unless-followed-by", "harmless", "costly"]
Value: TypeAlias = int | float | str


@dataclass(frozen=True, slots=True)
class BootBegan:
    """Another boot of a rank begins in the same log: its container was started again."""

    node: Node | None
    line: int  # counted from 1


@dataclass(frozen=True, slots=True)
class PhaseEntered:
    """A rank is further than before. `stamp_s`: the log's own time, in seconds since its year began, or None."""

    node: Node | None
    phase: Phase
    line: int
    stamp_s: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    """A progress bar moved. `percent` is 0 to 100; `what` is the bar's own title."""

    node: Node | None
    phase: Phase
    what: str
    percent: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A number or a word that the log states; figures.py names them, with units."""

    node: Node | None
    name: str
    value: Value
    line: int


@dataclass(frozen=True, slots=True)
class UnknownVariable:
    """A variable of the environment that this runtime does not register."""

    node: Node | None
    name: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The rank has done its part: the head serves, or the worker waits for work."""

    node: Node | None
    line: int


@dataclass(frozen=True, slots=True)
class Found:
    """A signature was met for the first time in this boot, or again after it had been resolved."""

    node: Node | None
    signature: str
    failure: str | None
    severity: Severity
    line: int
    text: str  # the line, shortened, secrets masked


@dataclass(frozen=True, slots=True)
class Resolved:
    """What would have been fatal was followed by what makes it harmless."""

    node: Node | None
    signature: str
    line: int


Event: TypeAlias = BootBegan | PhaseEntered | Progress | Figure | UnknownVariable | Ready | Found | Resolved
