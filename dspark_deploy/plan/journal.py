"""What runs leave behind about a pair: entries of its history, and marks that the next command heeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

BOOTING = "booting"  # mark: a run detached while this release was booting
AGREED, DIFFERED = "parity", "parity-lost"  # marks: what a comparison of the ranks said; `reason` is ranks_word
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
    kv_cache_tokens: int | None = None  # the KV pool that the boot announced
    warnings: tuple[str, ...] = ()
    phases: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # node -> phase of its boot -> seconds

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
    entries = (_of(Entry, _readable(each)) for each in document["history"])
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


def ranks_word(*ranks: tuple[str, str | None]) -> str:
    """What a comparison of ranks is remembered by: (container's id, when it was started) of each."""
    return " ".join(f"{container[:12]}@{started_at}" for container, started_at in ranks)


def compared(journals: Iterable[Journal], ranks: str) -> tuple[str | None, str | None]:
    """When these very ranks (see ranks_word) were last found to agree, and to differ since; None: never."""
    journals = tuple(journals)
    agreed, differed = (_last(journals, name, ranks) for name in (AGREED, DIFFERED))
    return agreed, differed


def before(history: Iterable[Entry], current: str | None) -> str | None:
    """The release that served last before `current`; None where none did."""
    served = [entry.release for entry in history if entry.outcome == "serving" and entry.release]
    return next((release for release in reversed(served) if release != current), None)


def _last(journals: Iterable[Journal], name: str, reason: str) -> str | None:
    """When a mark with this reason was set last."""
    marks = (journal.marks.get(name) for journal in journals)
    return max((mark.at for mark in marks if mark is not None and mark.reason == reason), default=None)


def _readable(document: Any) -> Any:
    """An entry without those of its figures that have another shape than ours."""
    if not isinstance(document, dict):
        return None
    strange = {name for name in ("seconds", "phases") if not isinstance(document.get(name, {}), dict)}
    if "phases" not in strange and not all(map(_are_seconds, document.get("phases", {}).values())):
        strange.add("phases")
    return {name: value for name, value in document.items() if name not in strange}


def _are_seconds(phases: Any) -> bool:
    return isinstance(phases, dict) and all(isinstance(seconds, int | float) for seconds in phases.values())


def _of(kind: type[Any], document: Any) -> Any:
    known = {each.name for each in fields(kind)}
    if not isinstance(document, dict):
        return None
    try:
        return kind(**{name: value for name, value in document.items() if name in known})
    except TypeError:
        return None
