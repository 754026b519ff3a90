"""One HTML page that holds everything it shows: it opens from disk and asks no network."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dspark_deploy.bundled import data_folder
from dspark_deploy.measure.figures import Change
from dspark_deploy.measure.report.charts import Chart
from dspark_deploy.measure.report.tables import Table, change_table, drift_text, origin_table, table_of
from dspark_deploy.measure.store import Measurement
from dspark_deploy.measure.trends import Trend

Draw = Callable[[Chart, Literal["svg", "png"]], bytes]
DRAWING_IS_MISSING = (
    "Plots are missing: pip install 'dspark-deploy[plot]' brings matplotlib, then write the report again."
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture that is drawn already."""

    alt: str  # what it shows, in words
    caption: str
    svg: bytes

    @property
    def source(self) -> str:
        """A data: URL."""
        return _data_url(self.svg)


@dataclass(frozen=True, slots=True)
class Section:
    """One measurement on the page."""

    measurement: Measurement[Any]
    charts: tuple[Chart, ...] = ()
    trends: tuple[Trend, ...] = ()
    figure: Figure | None = None

    @property
    def beside(self) -> str:
        """What decode rates are beside published ones; empty where they were not set beside any."""
        return drift_text(self.measurement.result)


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as the page shows it."""

    chart: Chart
    source: str  # a data: URL


def render_page(
    pair: str,
    sections: Sequence[Section],
    changes: Sequence[Change],
    against: Measurement[Any] | None,
    draw: Draw | None,
) -> str:
    """The page. `draw` None: tables alone, and a sentence on what is missing."""
    environment = Environment(
        loader=FileSystemLoader(data_folder("templates") / "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pictures = {
        chart.name: Picture(chart, _data_url(draw(chart, "svg")))
        for section in sections
        for chart in section.charts
        if draw is not None
    }
    return environment.get_template("page.html.j2").render(
        pair=pair,
        sections=sections,
        tables={section.measurement.id: _tables(section) for section in sections},
        pictures=pictures,
        missing=DRAWING_IS_MISSING if draw is None else "",
        against=against,
        regressed=[each for each in changes if each.regressed],
        changes=change_table(changes) if changes else None,
    )


def _tables(section: Section) -> tuple[Table, Table]:
    return table_of(section.measurement), origin_table(section.measurement.origin)


def _data_url(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
