"""What a check says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.errors import CheckRefused

CACHE = "cache"  # the group of what is said of both nodes' snapshots

Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's verdict on one node, or on the pair where `node` is None. `skip`: it could not be told."""

    id: str  # names the check; `--skip` and scripts match on it
    status: Status
    message: str
    node: str | None = None
    remedy: str = ""
    failure_ids: tuple[str, ...] = ()  # rows of docs/failures.md that it covers
    group: str = ""  # what it is about, in one word


def failures(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that stop a start."""
    return tuple(finding for finding in findings if finding.status == "fail")


def refuse(findings: Iterable[Finding]) -> None:
    """Raise CheckRefused where anything fails: the first in full, the others named."""
    failed = failures(findings)
    if not failed:
        return
    first, *others = failed
    raise CheckRefused(
        first.message,
        why="\n".join((*(f"and {other.message} -> {other.remedy}" for other in others), *_ways_past(failed))),
        remedy=first.remedy,
        node=first.node,
    )


def _ways_past(failed: Iterable[Finding]) -> Iterator[str]:
    """Caches have one of their own: no skipping makes a shard whole."""
    ids = dict.fromkeys(finding.id for finding in failed if finding.group != CACHE)
    if ids:
        yield f"found by {', '.join(ids)}; `--skip ID` goes on regardless of one"
    if any(finding.group == CACHE for finding in failed):
        yield "`dspark up --online` is the way past a cache that is not complete: each node downloads what it lacks"
