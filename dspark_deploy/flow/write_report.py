"""`report`: kept measurements as a page, plots, CSV and JSON; against an earlier run, what got worse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.published import published_for
from dspark_deploy.flow.record import state_home
from dspark_deploy.flow.wish import Wish
from dspark_deploy.measure.figures import TOLERANCE, Change, compare_figures, figures_of
from dspark_deploy.measure.lanes import load_lanes
from dspark_deploy.measure.report.charts import decode_charts, sweep_charts
from dspark_deploy.measure.report.page import Draw, Figure, Section, render_page
from dspark_deploy.measure.report.tables import to_csv
from dspark_deploy.measure.store import DecodeResult, Kind, Measurement, Store, SweepResult
from dspark_deploy.measure.trends import read_trends
from dspark_deploy.plan.catalogue import Catalogue

DrawBudget = Callable[[Measurement[SweepResult], Catalogue], Figure | None]
try:
    from dspark_deploy.measure.report.plots import draw
except ImportError:  # the extra `plot` is not installed: the page says so
    DRAW: Draw | None = None
    DRAW_BUDGET: DrawBudget | None = None
else:
    from dspark_deploy.flow.budget_figure import budget_figure

    DRAW, DRAW_BUDGET = draw, budget_figure

ORDER: tuple[Kind, ...] = ("sweep", "decode", "gate", "churn", "deep", "smoke", "compare")
EARLIER = 3  # runs of the same kind that are drawn along


@dataclass(frozen=True, slots=True)
class ReportWish:
    """None: the latest of each kind, and no comparison."""

    run: str | None = None
    against: str | None = None
    tolerance: float = TOLERANCE


@dataclass(frozen=True, slots=True)
class Written:
    """The files, and what the comparison says."""

    pair: str
    measurements: tuple[str, ...]
    files: tuple[str, ...]
    against: str | None
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]

    @property
    def regressed(self) -> tuple[Change, ...]:
        """Figures that got worse by more than noise and tolerance explain."""
        return tuple(each for each in self.changes if each.regressed)


def list_measurements(wish: Wish) -> tuple[Measurement[Any], ...]:
    """All that is kept of the pair, the oldest first."""
    return _store(wish).all()


def write_report(wish: Wish, report: ReportWish, folder: Path) -> Written:
    """Raises ConfigError where nothing was measured, a run is unknown, or the folder can't be written."""
    store = _store(wish)
    chosen = _chosen(store, report.run)
    against = store.named(report.against) if report.against else None
    now = _partner(chosen, against)
    changes = compare_figures(now, against, report.tolerance) if now and against else ()
    sections = [_section(each, store.all(each.kind), catalogue_of(wish)) for each in chosen]
    pair = chosen[0].origin.pair
    page = render_page(pair, sections, changes, against, DRAW)
    files = {"report.html": page.encode(), "report.csv": to_csv(chosen).encode(), "report.json": _json(chosen, changes)}
    if DRAW is not None:
        files |= {f"{chart.name}.png": DRAW(chart, "png") for section in sections for chart in section.charts}
    _write(folder, files)
    return Written(
        pair=pair,
        measurements=tuple(each.id for each in chosen),
        files=tuple(str(folder / name) for name in files),
        against=against.id if against else None,
        changes=changes,
        warnings=tuple(_warnings(now, against, changes)),
    )


def _store(wish: Wish) -> Store:
    return Store(state_home(wish.environment, wish.home), load_inventory_of(wish).name)


def _chosen(store: Store, run: str | None) -> tuple[Measurement[Any], ...]:
    if run is not None:
        return (store.named(run),)
    latest = {each.kind: each for each in store.all()}
    if not latest:
        raise ConfigError(
            f"nothing of this pair has been measured: {store.folder} is empty",
            remedy="`dspark bench decode` or `dspark bench sweep` measure it",
        )
    return tuple(latest[kind] for kind in ORDER if kind in latest)


def _partner(chosen: Sequence[Measurement[Any]], against: Measurement[Any] | None) -> Measurement[Any] | None:
    """The shown measurement that the earlier one is compared with: of its kind, and not itself."""
    if against is None:
        return None
    return next((each for each in chosen if each.kind == against.kind and each.id != against.id), None)


def _section(measurement: Measurement[Any], kept: Sequence[Measurement[Any]], catalogue: Catalogue) -> Section:
    earlier = [each for each in kept if each.began < measurement.began and each.id != measurement.id][-EARLIER:]
    match measurement.result:
        case SweepResult() as result:
            charts = sweep_charts(measurement, published_for(measurement.origin), earlier)
            figure = DRAW_BUDGET(measurement, catalogue) if DRAW_BUDGET is not None else None
            return Section(measurement, charts, read_trends(result.cells), figure)
        case DecodeResult() as result:
            lane = next((each for each in load_lanes() if each.name == result.expected), None)
            return Section(measurement, decode_charts(measurement, lane, earlier))
        case _:
            return Section(measurement)


def _json(chosen: Sequence[Measurement[Any]], changes: Sequence[Change]) -> bytes:
    document = {
        "measurements": [
            {
                "id": each.id,
                "kind": each.kind,
                "began": each.began,
                "profile": each.origin.profile,
                "release": each.origin.release,
                "figures": [
                    {
                        "metric": figure.metric,
                        "prompt_tokens": figure.prompt,
                        "concurrency": figure.concurrency,
                        "value": figure.value,
                        "unit": figure.unit,
                        "noise": figure.noise,
                    }
                    for figure in figures_of(each)
                ],
            }
            for each in chosen
        ],
        "changes": [
            {
                "metric": each.now.metric,
                "prompt_tokens": each.now.prompt,
                "concurrency": each.now.concurrency,
                "before": each.before.value,
                "now": each.now.value,
                "worse": each.worse,
                "allowed": each.allowed,
                "regressed": each.regressed,
            }
            for each in changes
        ],
    }
    return (json.dumps(document, indent=2) + "\n").encode()


def _write(folder: Path, files: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise ConfigError(
            f"the report can't be written to {folder}: {error.strerror}", remedy="name another --dir"
        ) from error


def _warnings(
    now: Measurement[Any] | None, against: Measurement[Any] | None, changes: Sequence[Change]
) -> Iterator[str]:
    if DRAW is None:
        yield "plots are missing: pip install 'dspark-deploy[plot]'"
    if against is None:
        return
    if now is None:
        yield f"no other measurement of kind {against.kind} is shown: nothing is compared with {against.id}"
    elif not changes:
        yield f"{now.id} and {against.id} have no figure in common"
    elif now.origin.release != against.origin.release:
        yield f"{against.id} measured release {against.origin.release}, {now.id} release {now.origin.release}"
