"""What is drawn, as data: lines with titles, axes and units, and the same in words for who can't see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dspark_deploy.capacity.measurements import Row
from dspark_deploy.capacity.measurements import Sweep as Published
from dspark_deploy.measure.lanes import PublishedLane
from dspark_deploy.measure.store import DecodeResult, Measurement, SweepResult

Style = Literal["now", "published", "earlier"]


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one kind. `group` is drawn in one colour: the same concurrency, measured and published."""

    label: str
    group: str
    points: tuple[tuple[float, float], ...]
    style: Style = "now"


@dataclass(frozen=True, slots=True)
class Chart:
    """One plot. `name` is that of its file."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False

    @property
    def alt(self) -> str:
        """What it shows, in words."""
        told = [f"{line.label} from {line.points[0][1]:.4g} to {line.points[-1][1]:.4g}" for line in self.lines[:8]]
        more = f", and {len(self.lines) - 8} lines more" if len(self.lines) > 8 else ""  # noqa: PLR2004  enough to hear
        return f"{self.title}. {self.y_label} over {self.x_label}: {'; '.join(told)}{more}."


_COLUMNS: tuple[tuple[str, str, str, bool, Callable[[Any], float | None]], ...] = (
    ("ttft", "Time to first token", "TTFT in s", True, lambda each: each.ttft_s),
    ("prefill", "Prefill rate", "prompt tokens per s", True, lambda each: each.prefill_tps),
    ("decode", "Decode rate per stream", "tokens per s", False, lambda each: each.decode_tps),
    ("aggregate", "Aggregate output rate", "tokens per s", False, lambda each: each.aggregate_tps),
)


def sweep_charts(
    now: Measurement[SweepResult], published: Published | None, earlier: Sequence[Measurement[SweepResult]]
) -> tuple[Chart, ...]:
    """Each column over the prompt length, one line a concurrency, and two columns over the concurrency."""
    charts = []
    for name, title, unit, log_y, value in _COLUMNS:
        lines = [*_by_concurrency(now.result.cells, value, "now", "")]
        if published is not None:
            lines += _by_concurrency(published.rows, value, "published", ", published")
        for run in earlier:
            lines += _by_concurrency(run.result.cells, value, "earlier", f", {run.began[:10]}")
        known = {line.group for line in lines if line.style == "now"}
        shown = tuple(line for line in lines if line.group in known)
        charts.append(Chart(f"sweep-{name}", title, "prompt length in tokens", unit, shown, True, log_y))
    for name, title, unit, _, value in _COLUMNS[2:]:
        lines = [*_by_prompt(now.result.cells, value, "now", "")]
        if published is not None:
            lines += _by_prompt(published.rows, value, "published", ", published")
        known = {line.group for line in lines if line.style == "now"}
        shown = tuple(line for line in lines if line.group in known)
        charts.append(Chart(f"concurrency-{name}", f"{title} by load", "concurrent requests", unit, shown))
    return tuple(chart for chart in charts if chart.lines)


def decode_charts(
    now: Measurement[DecodeResult], lane: PublishedLane | None, earlier: Sequence[Measurement[DecodeResult]]
) -> tuple[Chart, ...]:
    """Aggregate and stream rate over the concurrency."""
    lines = [*_lanes(now, "now", "")]
    if lane is not None:
        points = tuple((float(each.concurrency), sum(each.aggregate_tps) / 2) for each in lane.figures)
        lines.append(Line(f"aggregate, published for {lane.name}", "aggregate", points, "published"))
    for run in earlier:
        lines += _lanes(run, "earlier", f", {run.began[:10]}")
    shown = tuple(line for line in lines if line.points)
    if not shown:
        return ()
    return (Chart("decode", "Decode rate by load", "concurrent requests", "tokens per s", shown),)


def _lanes(run: Measurement[DecodeResult], style: Style, suffix: str) -> Iterator[Line]:
    medians = [(lane.concurrency, lane.median) for lane in run.result.lanes if lane.median]
    yield Line(f"aggregate{suffix}", "aggregate", tuple((float(at), each.aggregate_tps) for at, each in medians), style)
    streams = tuple((float(at), each.mean_stream_tps) for at, each in medians)
    yield Line(f"per stream{suffix}", "stream", streams, style)


def _by_concurrency(
    rows: Iterable[Row | Any], value: Callable[[Any], float | None], style: Style, suffix: str
) -> Iterator[Line]:
    kept = list(rows)
    for concurrency in sorted({row.concurrency for row in kept}):
        points = sorted(
            (float(row.prompt), found)
            for row in kept
            if row.concurrency == concurrency and (found := value(row)) is not None
        )
        if points:
            yield Line(f"{concurrency} at once{suffix}", str(concurrency), tuple(points), style)


def _by_prompt(
    rows: Iterable[Row | Any], value: Callable[[Any], float | None], style: Style, suffix: str
) -> Iterator[Line]:
    kept = list(rows)
    for prompt in sorted({row.prompt for row in kept}):
        points = sorted(
            (float(row.concurrency), found)
            for row in kept
            if row.prompt == prompt and (found := value(row)) is not None
        )
        if points:
            yield Line(f"{prompt} tokens{suffix}", str(prompt), tuple(points), style)
