"""What a check says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.errors import CheckRefused

Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's verdict on one node, or on the pair where `node` is None."""

    id: str  # names the check; `--skip` and scripts match on it
    status: Status
    message: str
    node: str | None = None
    remedy: str = ""
    failure_ids: tuple[str, ...] = ()  # rows of docs/failures.md that it covers


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
        why="\n".join(f"and {other.message} -> {other.remedy}" for other in others),
        remedy=first.remedy,
        node=first.node,
    )
