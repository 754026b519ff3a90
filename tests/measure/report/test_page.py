"""The page as text, its charts as data, and the files beside it."""

from __future__ import annotations

import base64
import csv
import io
import re
from functools import cache
from html.parser import HTMLParser

import pytest

from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.measure.figures import compare_figures
from dspark_deploy.measure.lanes import find_lane, load_lanes
from dspark_deploy.measure.report.charts import Chart, decode_charts, sweep_charts
from dspark_deploy.measure.report.page import DRAWING_IS_MISSING, Draw, Section, render_page
from dspark_deploy.measure.report.plots import draw, figure_of
from dspark_deploy.measure.report.tables import table_of, to_csv
from dspark_deploy.measure.trends import read_trends
from tests.measure.samples import decode, gate, sweep

PUBLISHED = next(each for each in load_measurements().sweeps if each.name == "sweep-2026-08-01")


def charts() -> tuple[Chart, ...]:
    """All that a page of the samples shows."""
    lane = find_lane(load_lanes(), "agent-1m", "static")
    earlier = [sweep(0.9, "2026-08-20T11:00:00+00:00")]
    return (
        *sweep_charts(sweep(), PUBLISHED, earlier),
        *decode_charts(decode(), lane, [decode(0.9, "2026-08-20T10:00:00+00:00")]),
    )


@cache
def page(drawing: Draw | None = draw) -> str:
    """The page of the samples."""
    sections = [
        Section(sweep(), charts()[:-1], read_trends(sweep().result.cells)),
        Section(decode(), charts()[-1:]),
        Section(gate()),
    ]
    before = decode(1.12, "2026-08-20T10:00:00+00:00")
    return render_page("example", sections, compare_figures(decode(), before), before, drawing)


@pytest.mark.parametrize("chart", charts(), ids=lambda chart: chart.name)
def test_every_plot_has_a_title_axes_with_units_and_words(chart: Chart) -> None:
    (axes,) = figure_of(chart).axes
    assert axes.get_title(loc="left") == chart.title
    assert axes.get_xlabel() == chart.x_label in {"prompt length in tokens", "concurrent requests"}
    assert axes.get_ylabel() == chart.y_label
    assert re.search(r"in s$|per s$", chart.y_label)
    assert chart.title in chart.alt
    assert {line.style for line in chart.lines} >= {"now"}


def test_charts_show_this_run_the_published_one_and_earlier_ones() -> None:
    (ttft, *_) = charts()
    assert {line.label for line in ttft.lines if line.group == "2"} == {
        "2 at once",
        "2 at once, published",
        "2 at once, 2026-08-20",
    }
    assert next(line for line in ttft.lines if line.label == "1 at once, published").points[0] == (256.0, 0.63)


def test_a_drawing_is_the_same_each_time() -> None:
    chart = charts()[0]
    assert draw(chart, "svg") == draw(chart, "svg")
    assert draw(chart, "png").startswith(b"\x89PNG")


class _Read(HTMLParser):
    """Tags with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_asks_no_network_and_every_picture_has_words() -> None:
    reader = _Read()
    reader.feed(text := page())
    assert not [tag for tag, _ in reader.tags if tag in {"script", "iframe", "object"}]
    links = [value for _, given in reader.tags for name, value in given.items() if name in {"src", "href"}]
    assert all(value and value.startswith("data:") for value in links)
    pictures = [given for tag, given in reader.tags if tag == "img"]
    assert len(pictures) == len(charts())
    for picture, chart in zip(pictures, charts(), strict=True):
        assert picture["alt"] == chart.alt
        svg = base64.b64decode((picture["src"] or "").partition(",")[2]).decode()
        assert f"<!-- {chart.title} -->" in svg
        assert f"<!-- {chart.y_label} -->" in svg
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_what_a_model_answered_is_text_and_no_markup() -> None:
    assert "<b>因为</b>" not in page()
    assert "&lt;b&gt;因为&lt;/b&gt;" in page()


def test_the_page_says_what_produced_it_and_what_measuring_cost() -> None:
    text = page()
    for wanted in (
        "agent-1m",
        "sha256:aa11",
        "2493464 tokens",
        "--max-num-seqs 6",
        "580.95.05",
        "12.0 % of a core",
        "1 failed",
    ):
        assert wanted in text


def test_regressions_are_named_first() -> None:
    text = page()
    assert text.index("8 figures regressed") < text.index("<h2>Sweep</h2>")
    assert "aggregate, 6 at once: 192.6 → 172 tok/s, 10.7 % worse (allowed 5.0 %)" in text


def test_without_matplotlib_the_tables_are_there_and_what_is_missing_is_said() -> None:
    text = page(drawing=None)
    assert DRAWING_IS_MISSING.replace("'", "&#39;") in text
    assert "<img" not in text
    assert "78.75" in text


def test_csv_holds_every_figure() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv([sweep(), decode()]))))
    assert len(rows) == 4 * 18 + 3 * 4
    assert rows[0]["metric"] == "ttft"
    assert float(rows[0]["value"]) == pytest.approx(0.63)


def test_a_decode_table_reads_like_the_published_one() -> None:
    table = table_of(decode())
    assert table.heads[:6] == (
        "at once",
        "trials in tok/s",
        "aggregate in tok/s",
        "stream in tok/s",
        "window in s",
        "tokens",
    )
    assert table.rows[0][:6] == ("1", "74.0, 72.5, 76.2", "74.0", "74.0", "6.91", "511")
    assert table.rows[0][-2:] == ("73 to 76", "+0.0% within")
