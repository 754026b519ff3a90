"""What an estimate between rows is worth: every row of a sweep, left out and interpolated from the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from dspark_deploy.capacity.measurements import Row, Sweep
from dspark_deploy.capacity.sweep import Estimate, NoNumber, interpolate

METRICS = ("ttft_s", "prefill_tps", "decode_tps", "aggregate_tps", "decode_aggregate_tps")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One row, and what the others make of it."""

    row: Row
    rule: str  # how it was estimated, or why it could not be
    errors: Mapping[str, float]  # metric -> share of the measured figure; what either lacks is missing


def leave_each_out(sweep: Sweep) -> tuple[LeftOut, ...]:
    """Every row of the table, in its order."""
    return tuple(_leave_out(sweep, row) for row in sweep.rows)


def spread(left_out: tuple[LeftOut, ...], metric: str) -> tuple[float, float] | None:
    """The median and the largest error of a metric, without signs, over the rows that lie between two others."""
    errors = [abs(each.errors[metric]) for each in left_out if between(each) and metric in each.errors]
    return (median(errors), max(errors)) if errors else None


def between(left_out: LeftOut) -> bool:
    """Whether the row was estimated from a shorter and a longer one."""
    return left_out.rule.startswith("a straight line")


def _leave_out(sweep: Sweep, row: Row) -> LeftOut:
    others = sweep.model_copy(update={"rows": tuple(each for each in sweep.rows if each != row)})
    found = interpolate(others, row.prompt, row.concurrency)
    if isinstance(found, NoNumber):
        return LeftOut(row, "no number", {})
    errors = {metric: _error(found, row, metric) for metric in METRICS}
    return LeftOut(row, found.rule, {metric: error for metric, error in errors.items() if error is not None})


def _error(found: Estimate, row: Row, metric: str) -> float | None:
    estimated, measured = getattr(found, metric), getattr(row, metric)
    return None if estimated is None or measured is None else estimated / measured - 1
