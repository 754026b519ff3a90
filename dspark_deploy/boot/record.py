"""What is remembered of one boot of one rank: its size is bounded, whatever the log does."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dspark_deploy.boot.events import Node, Value
from dspark_deploy.boot.figures import read_bar
from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.quote import quote

KEPT_COMPLAINTS = 4  # the first ones and the last ones, each
KEPT_VARIABLES = 64
KEPT_BARS = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """When a phase was entered. `stamp_s`: the log's own time, seconds since its year began, or None before the first.

    A line without a time of its own has that of the line before it.
    """

    line: int
    stamp_s: float | None


@dataclass(frozen=True, slots=True)
class Sighting:
    """A signature in a boot: where it stood first, how often, and what the line told."""

    signature: str
    line: int
    last_line: int
    count: int
    text: str  # shortened, secrets masked
    phase: Phase
    stamp_s: float | None
    values: Mapping[str, str]
    resolved: bool  # followed by what makes it harmless


@dataclass(frozen=True, slots=True)
class Complaint:
    """An error that the log states, known or not."""

    line: int
    text: str  # shortened, secrets masked


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of one rank, as far as its log tells."""

    node: Node | None  # None: the log never says which rank it is
    line: int  # where it begins
    last_line: int  # the last one that told anything
    phase: Phase | None  # None: no known line
    percent: int | None  # of the phase's progress bar; None: it has shown none
    entered: Mapping[Phase, Entry]
    figures: Mapping[str, Value]
    unknown_variables: tuple[str, ...]
    sightings: Mapping[str, Sighting]
    complaints: tuple[Complaint, ...]  # the first and the last few
    ready: bool
    stopped: bool  # somebody asked it to end


@dataclass(slots=True)
class SightingState:
    """A sighting while it is repeated."""

    first: Sighting
    last_line: int
    count: int
    resolved: bool = False

    def frozen(self) -> Sighting:
        """As it stands now."""
        return replace(self.first, last_line=self.last_line, count=self.count, resolved=self.resolved)


@dataclass(slots=True)
class BootState:
    """The same while it grows."""

    node: Node | None
    line: int
    last_line: int = 0
    last_stamp_s: float | None = None
    phase: Phase | None = None
    entered: dict[Phase, Entry] = field(default_factory=dict)
    figures: dict[str, Value] = field(default_factory=dict)
    unknown_variables: dict[str, None] = field(default_factory=dict)
    sightings: dict[str, SightingState] = field(default_factory=dict)
    first_complaints: list[tuple[int, str | bytes, int]] = field(default_factory=list)
    last_complaints: deque[tuple[int, str | bytes, int]] = field(default_factory=lambda: deque(maxlen=KEPT_COMPLAINTS))
    bars: dict[str, int] = field(default_factory=dict)
    last_bar: tuple[str | bytes, int] | None = None  # of the phase at hand: the line, and where in it
    ready: bool = False
    stopped: bool = False

    def frozen(self) -> Boot:
        """As it stands now."""
        return Boot(
            node=self.node,
            line=self.line,
            last_line=self.last_line,
            phase=self.phase,
            percent=self._percent(),
            entered=dict(self.entered),
            figures=dict(self.figures),
            unknown_variables=tuple(self.unknown_variables),
            sightings={name: each.frozen() for name, each in self.sightings.items()},
            complaints=tuple(
                Complaint(line, quote(_text(text), at))
                for line, text, at in (*self.first_complaints, *self.last_complaints)
            ),
            ready=self.ready,
            stopped=self.stopped,
        )

    def complain(self, line: int, text: str | bytes, at: int) -> None:
        """Keep an error that stands at `at` in the line. It is put into words when somebody asks."""
        kept = self.last_complaints if len(self.first_complaints) == KEPT_COMPLAINTS else self.first_complaints
        kept.append((line, text, at))

    def _percent(self) -> int | None:
        moved = read_bar(_text(self.last_bar[0]), self.last_bar[1]) if self.last_bar else None
        return moved[1] if moved else None


def _text(line: str | bytes) -> str:
    """Kept as bytes until somebody asks."""
    return line if isinstance(line, str) else line.decode("utf-8", "replace")
