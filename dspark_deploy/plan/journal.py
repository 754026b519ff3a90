"""What runs leave behind about a pair: entries of its history, and marks that the next command heeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

BOOTING = "booting"  # mark: a run detached while this release was booting
UNCONFIRMED = "unconfirmed-"  # mark + node: a stop there could not be confirmed (a tombstone)


@dataclass(frozen=True, slots=True)
class Entry:
    """One run that changed something, as every node keeps it."""

    run: str  # the controller's own name of the run
    at: str  # RFC 3339, the controller's clock
    who: str  # user@controller
    command: str
    outcome: str  # `serving`, `down`, or an error's id
    release: str | None = None
    profile: str | None = None
    family: str | None = None
    message: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)  # phase -> seconds
    kv_cache_tokens: int | None = None
    warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on a node: since when, by whom, and what it speaks of."""

    at: str
    who: str
    release: str | None = None
    reason: str = ""
    run: str = ""  # the controller's own name of the run that left it

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Journal:
    """One node's history and marks."""

    history: tuple[Entry, ...]  # oldest first
    marks: Mapping[str, Mark]
    releases: Mapping[str, Mapping[str, Any] | None]  # id -> what its manifest says is served


def parse_journal(document: Mapping[str, Any]) -> Journal:
    """What a node told. Entries and marks of another shape, by another version of dspark, are passed over."""
    entries = (_of(Entry, each) for each in document["history"])
    marks = {name: _of(Mark, each) for name, each in document["marks"].items()}
    return Journal(
        history=tuple(entry for entry in entries if entry is not None),
        marks={name: mark for name, mark in marks.items() if mark is not None},
        releases=document["releases"],
    )


def merged(journals: Iterable[Journal]) -> tuple[Entry, ...]:
    """The history of the pair: each run once, oldest first, whichever node could be reached when it ended."""
    entries = {entry.run: entry for journal in journals for entry in journal.history}
    return tuple(sorted(entries.values(), key=lambda entry: entry.at))


def unconfirmed(journals: Iterable[Journal]) -> dict[str, Mark]:
    """Node -> the stop there that could not be confirmed."""
    return {
        name.removeprefix(UNCONFIRMED): mark
        for journal in journals
        for name, mark in journal.marks.items()
        if name.startswith(UNCONFIRMED)
    }


def detached(journals: Iterable[Journal], release: str | None) -> Mark | None:
    """The mark of a run that detached while `release` was booting; None where none did."""
    marks = (journal.marks.get(BOOTING) for journal in journals)
    return next((mark for mark in marks if mark is not None and mark.release == release), None)


def before(history: Iterable[Entry], current: str | None) -> str | None:
    """The release that served last before `current`; None where none did."""
    served = [entry.release for entry in history if entry.outcome == "serving" and entry.release]
    return next((release for release in reversed(served) if release != current), None)


def _of(kind: type[Any], document: Any) -> Any:
    known = {each.name for each in fields(kind)}
    if not isinstance(document, dict):
        return None
    try:
        return kind(**{name: value for name, value in document.items() if name in known})
    except TypeError:
        return None
