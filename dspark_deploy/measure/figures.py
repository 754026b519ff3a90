"""A measurement as single figures, and two measurements beside each other: what got worse, noise considered."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dspark_deploy.measure.store import DecodeResult, Measurement, SweepResult
from dspark_deploy.measure.sweep import Cell, SweepTrial

TOLERANCE = 0.05
SECONDS, RATE, SHARE = "s", "tok/s", ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. `noise` is half the distance between best and worst trial, as a share of the value."""

    metric: str
    prompt: int | None  # tokens; None: the measurement has no prompt lengths
    concurrency: int
    value: float
    unit: str
    better: Literal["higher", "lower"]
    noise: float

    @property
    def place(self) -> str:
        """Where it was measured, for a sentence."""
        return f"{self.concurrency} at once" if self.prompt is None else f"{self.prompt} tokens x {self.concurrency}"


@dataclass(frozen=True, slots=True)
class Change:
    """One figure against an earlier one. `worse` is positive where it got worse, as a share of the earlier value."""

    now: Figure
    before: Figure
    worse: float
    allowed: float  # the tolerance, or the trials' own noise where that is greater

    @property
    def regressed(self) -> bool:
        """Whether it got worse by more than noise and tolerance explain."""
        return self.worse > self.allowed


def figures_of(measurement: Measurement[Any]) -> tuple[Figure, ...]:
    """Empty for kinds that measure no speed."""
    match measurement.result:
        case DecodeResult() as result:
            return tuple(_decode(result))
        case SweepResult() as result:
            return tuple(figure for cell in result.cells for figure in _cell(cell))
        case _:
            return ()


def compare_figures(
    now: Measurement[Any], before: Measurement[Any], tolerance: float = TOLERANCE
) -> tuple[Change, ...]:
    """Every figure that both have."""
    earlier = {(each.metric, each.prompt, each.concurrency): each for each in figures_of(before)}
    changes = []
    for figure in figures_of(now):
        old = earlier.get((figure.metric, figure.prompt, figure.concurrency))
        if old is None or old.value == 0:
            continue
        change = figure.value / old.value - 1
        worse = change if figure.better == "lower" else -change
        changes.append(Change(figure, old, worse, max(tolerance, figure.noise + old.noise)))
    return tuple(changes)


def _decode(result: DecodeResult) -> Iterator[Figure]:
    for lane in result.lanes:
        trial = lane.median
        if trial is None:
            continue
        yield Figure("aggregate", None, lane.concurrency, trial.aggregate_tps, RATE, "higher", lane.spread)
        streams = [each.mean_stream_tps for each in lane.trials if each.tokens]
        yield Figure("stream", None, lane.concurrency, trial.mean_stream_tps, RATE, "higher", _noise(streams))
        if trial.acceptance:
            rates = [each.acceptance.rate for each in lane.trials if each.acceptance]
            yield Figure("acceptance", None, lane.concurrency, trial.acceptance.rate, SHARE, "higher", _noise(rates))


def _cell(cell: Cell) -> Iterator[Figure]:
    columns: tuple[
        tuple[str, float | None, str, Literal["higher", "lower"], Callable[[SweepTrial], Sequence[float]]], ...
    ]
    columns = (
        ("ttft", cell.ttft_s, SECONDS, "lower", lambda trial: trial.ttft_s),
        ("prefill", cell.prefill_tps, RATE, "higher", lambda trial: trial.prefill_tps),
        ("decode", cell.decode_tps, RATE, "higher", lambda trial: trial.decode_tps),
        ("aggregate", cell.aggregate_tps, RATE, "higher", lambda trial: (trial.aggregate_tps,)),
    )
    for metric, value, unit, better, of in columns:
        if value is not None:
            trials = [statistics.median(found) for trial in cell.trials if (found := of(trial))]
            yield Figure(metric, cell.prompt, cell.concurrency, value, unit, better, _noise(trials))


def _noise(values: Sequence[float]) -> float:
    middle = statistics.median(values) if values else 0.0
    return (max(values) - min(values)) / 2 / middle if middle else 0.0
