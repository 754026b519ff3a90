"""Charts drawn by matplotlib, the optional extra `plot`. Importing this without it is an ImportError."""

from __future__ import annotations

import io
from typing import Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter

from dspark_deploy.measure.report.charts import Chart, Style

# Told apart without colour, too: by their marks.
_COLOURS = ("#0b6bcb", "#c2410c", "#15803d", "#7c3aed", "#a16207", "#be185d", "#0e7490", "#404040")
_MARKS = "osD^vP*X"
_STYLES: dict[Style, tuple[str, float, float]] = {  # line, width, opacity
    "now": ("-", 2.0, 1.0),
    "published": ("--", 1.4, 0.75),
    "earlier": (":", 1.2, 0.5),
}
SIZE, DOTS = (6.4, 4.8), 110  # inches; dots an inch of a PNG
LEGEND_COLUMNS = 3


def draw(chart: Chart, kind: Literal["svg", "png"]) -> bytes:
    """The same bytes for the same chart."""
    with rc_context(
        {"svg.hashsalt": chart.name, "font.size": 11, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = figure_of(chart)
        content = io.BytesIO()
        metadata = {"Date": None, "Title": chart.title} if kind == "svg" else {"Title": chart.title, "Software": None}
        figure.savefig(content, format=kind, dpi=DOTS, metadata=metadata)
    return content.getvalue()


def figure_of(chart: Chart) -> Figure:
    """The drawing itself."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    groups = list(dict.fromkeys(line.group for line in chart.lines))
    for line in chart.lines:
        number = groups.index(line.group)
        stroke, width, opacity = _STYLES[line.style]
        axes.plot(
            [x for x, _ in line.points],
            [y for _, y in line.points],
            linestyle=stroke,
            linewidth=width,
            alpha=opacity,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKS[number % len(_MARKS)],
            markersize=5 if line.style == "now" else 3,
            label=line.label,
        )
    axes.set_title(chart.title, loc="left", fontweight="bold")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    _scale(axes, chart)
    axes.grid(visible=True, alpha=0.25)
    figure.legend(loc="outside lower left", frameon=False, fontsize=9, ncols=LEGEND_COLUMNS)
    return figure


def _scale(axes: Axes, chart: Chart) -> None:
    places = sorted({x for line in chart.lines for x, _ in line.points})
    if chart.log_x:
        axes.set_xscale("log", base=2)
    axes.set_xticks(places, labels=[f"{place:g}" for place in places])
    if chart.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    else:
        axes.set_ylim(bottom=0)
    axes.minorticks_off()
