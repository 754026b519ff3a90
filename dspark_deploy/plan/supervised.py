"""What both nodes' journals tell `supervise`: which release is meant to serve, and what earlier restarts came to.

Kept nowhere else, so that any controller, and one that was started anew, concludes the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from dspark_deploy.plan.journal import BOOTING, Entry, Journal

COMMAND = "supervise"
BEGUN = "restarting"  # outcome of the entry that stands before a restart; its end replaces it, if there is one

NEUTRAL = ("interrupted", "lock-lost")  # outcomes of a restart that say nothing about the pair

Kind = Literal["died", "out-of-memory", "gone", "rebooted", "alone", "wedged", "refuses", "stalled"]


@dataclass(frozen=True, slots=True)
class Meant:
    """The release that is meant to serve; None: nothing is. `why` names the run that says so."""

    release: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Past:
    """Restarts by `supervise` since a person's last `up`, `switch`, `rollback` or `down`."""

    restarts: int = 0  # that began within the window
    out_of_memory: int = 0  # of these, for a rank that was killed for lack of memory
    failed: int = 0  # in a row, the last ones, whenever that was; one that never ended has failed
    last: str = ""  # what the last failed one said


def meant_to_serve(journals: Iterable[Journal]) -> Meant:
    """By the last run that decided it: one that was proved to serve, a boot that was left to go on, or a `down`.

    A run that failed decides nothing: it brought back what served, or left nothing.
    """
    found = [last for journal in journals if (last := _last(journal)) is not None]
    if not found:
        return Meant(None, "no run has served this pair yet, `dspark up` starts one")
    at, release, why = max(found)
    return Meant(release or None, f"{why} at {at}")


def past_restarts(journals: Iterable[Journal], now: datetime, window_s: float) -> Past:
    """What came of the restarts before. `now` is the controller's clock, with its zone."""
    every = tuple(journals)
    people = [entry.at for journal in every for entry in journal.history if _is_a_persons(entry)]
    since = max(people, default="")
    entries = [entry for journal in every for entry in journal.history if entry.command == COMMAND]
    begun = {entry.run: entry for entry in entries if entry.outcome == BEGUN and entry.at >= since}
    ended = {entry.run: entry for entry in entries if entry.outcome != BEGUN}
    ordered = sorted(begun.values(), key=lambda entry: entry.at)
    recent = [entry for entry in ordered if _age(entry.at, now) <= timedelta(seconds=window_s)]
    failed: list[Entry] = []
    for entry in ordered:
        end = ended.get(entry.run, entry)
        if end.outcome in NEUTRAL:
            continue
        failed = [] if end.outcome == "serving" else [*failed, end]
    return Past(
        restarts=len(recent),
        out_of_memory=sum(kind_of(entry) == "out-of-memory" for entry in recent),
        failed=len(failed),
        last=_said(failed[-1]) if failed else "",
    )


def begun(kind: Kind, why: str) -> str:
    """The message of an entry that stands before a restart."""
    return f"{kind}: {why}"


def kind_of(entry: Entry) -> Kind | None:
    """What a restart was begun for."""
    said = entry.message.partition(":")[0]
    return next((kind for kind in get_args(Kind) if kind == said), None)


def _said(entry: Entry) -> str:
    if entry.outcome == BEGUN:
        return f"the one of {entry.at} never ended: its node or its controller went down with it"
    return entry.message or entry.outcome


def _last(journal: Journal) -> tuple[str, str, str] | None:
    """When, which release (empty: none), and by whom, as this node has it."""
    decided = list(_decisions(journal))
    return decided[-1] if decided else None


def _decisions(journal: Journal) -> Iterator[tuple[str, str, str]]:
    """In the order in which the runs ended: one that waited for the lock has an earlier beginning than it acts."""
    newest = ""
    for entry in journal.history:
        if _decides(entry):
            newest = max(newest, entry.at)
            yield entry.at, entry.release or "", f"`dspark {entry.command}` of {entry.who}"
    left = journal.marks.get(BOOTING)
    if left is not None and left.release and left.at > newest:
        yield left.at, left.release, f"a boot that {left.who} left to go on"


def _decides(entry: Entry) -> bool:
    return entry.command == "down" or (entry.outcome == "serving" and bool(entry.release))


def _is_a_persons(entry: Entry) -> bool:
    return _decides(entry) and entry.command != COMMAND


def _age(at: str, now: datetime) -> timedelta:
    return now - datetime.fromisoformat(at)
