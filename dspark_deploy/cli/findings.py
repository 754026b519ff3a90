"""Findings as lines: a mark, the message, and under it what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dspark_deploy.checks.finding import Finding

MARKS = {"ok": ("[OK]", "green"), "warn": ("[WARN]", "yellow"), "fail": ("[FAIL]", "red"), "skip": ("[--]", None)}


def findings_text(findings: Iterable[Finding]) -> str:
    """One finding a line, its remedy on the next."""
    lines = []
    for finding in findings:
        mark, colour = MARKS[finding.status]
        lines.append(f"{click.style(mark, fg=colour)}{' ' * (7 - len(mark))}{finding.message}")
        if finding.remedy:
            lines.append(f"       -> {finding.remedy}")
    return "\n".join(lines)
