"""A check: what it is called, what it covers, and the function that judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.finding import Finding, Status

Severity = Literal["fail", "warn"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one node, or of the pair where `node` is None."""

    word: Literal["fine", "bad", "doubtful", "unknown"]
    message: str
    node: str | None = None
    remedy: str = ""
    failure_ids: tuple[str, ...] | None = None  # None: all that the check covers


@dataclass(frozen=True, slots=True)
class Check:
    """One entry of every.py. Pure: the case decides, no clock and no node is asked."""

    id: str
    group: str  # findings of one group are shown together
    severity: Severity  # of what is bad; what is doubtful is a warning whatever stands here
    failure_ids: tuple[str, ...]  # rows of docs/failures.md
    judge: Callable[[Case], Iterable[Verdict]]

    def findings(self, case: Case) -> Iterator[Finding]:
        """What it says of `case`."""
        status: dict[str, Status] = {"fine": "ok", "bad": self.severity, "doubtful": "warn", "unknown": "skip"}
        for each in self.judge(case):
            covered = self.failure_ids if each.failure_ids is None else each.failure_ids
            yield Finding(self.id, status[each.word], each.message, each.node, each.remedy, covered, self.group)


def fine(message: str, node: str | None = None) -> Verdict:
    """As it should be."""
    return Verdict("fine", message, node)


def bad(message: str, remedy: str, node: str | None = None, *, covers: tuple[str, ...] | None = None) -> Verdict:
    """As it must not be; `remedy` is the next thing to type or change."""
    return Verdict("bad", message, node, remedy, covers)


def doubtful(message: str, remedy: str, node: str | None = None, *, covers: tuple[str, ...] | None = None) -> Verdict:
    """Worth a look, though it stops nothing."""
    return Verdict("doubtful", message, node, remedy, covers)


def unknown(message: str, node: str | None = None) -> Verdict:
    """It could not be told, and why."""
    return Verdict("unknown", message, node)
