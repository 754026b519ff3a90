"""What commands that measure share: kinds of values, and tables as lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.text import columns

if TYPE_CHECKING:
    from dspark_deploy.measure.client import Tally
    from dspark_deploy.measure.overhead import Overhead
    from dspark_deploy.measure.report.tables import Table

MOST_NUMBERS = 64


def numbers(text: str) -> tuple[int, ...]:
    """`1,2,4` or `1-6`, each once and in that order."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if match is None:
            raise click.BadParameter(f"{text!r} is no list of numbers: write 1,2,4 or 1-6")
        first, last = int(match[1]), int(match[2] or match[1])
        if first < 1 or last < first or last - first >= MOST_NUMBERS:
            raise click.BadParameter(f"{part.strip()!r}: from 1 upwards, at most {MOST_NUMBERS} of them")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def share(text: str) -> float:
    """`5%` or `0.05`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no share: write 5% or 0.05")
    return float(match[1]) / (100 if match[2] else 1)


def table_text(table: Table) -> str:
    """Columns under each other; a cell of several lines becomes one."""
    rows = [table.heads, *(tuple(" ".join(cell.split()) for cell in row) for row in table.rows)]
    return columns(rows)


def overhead_text(overhead: Overhead | None, tally: Tally | None) -> str:
    """One line on what measuring cost."""
    if overhead is None or tally is None:
        return ""
    way = f", a small question takes {overhead.round_trip_s * 1000:.1f} ms" if overhead.round_trip_s is not None else ""
    failed = sum(tally.failures.values())
    late = f"events read at most {overhead.late_max_s * 1000:.0f} ms late"
    return (
        f"client: {overhead.cpu_share:.0%} of a core, {late}{way}; "
        f"{tally.requests} requests over {tally.connections} connections, {failed} failed, none repeated"
    )
