"""The report's files: a page that holds everything, and what the measured sweep means for capacity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dspark_deploy.flow import write_report as flow
from dspark_deploy.flow.wish import Wish
from dspark_deploy.flow.write_report import ReportWish, write_report
from dspark_deploy.measure.report.page import Figure
from dspark_deploy.measure.store import Origin, Store
from tests.measure.samples import ORIGIN, sweep
from tests.plan.deployments import CATALOGUE

FIGURE = Figure("TTFT and rates in words", "What it means", b"<svg/>")


@pytest.fixture(name="wish")
def _wish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wish:
    """A pair with one sweep, and nothing that draws its charts."""
    (tmp_path / "inventory.yaml").write_text("name: example\nhead: {host: a}\nworker: {host: b}\n")
    Store(tmp_path, "example").write(sweep())
    monkeypatch.setattr(flow, "DRAW", None)
    return Wish(directory=tmp_path, home=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path)})


def test_a_sweep_is_shown_as_what_it_means_for_capacity(
    wish: Wish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "DRAW_BUDGET", lambda *_: FIGURE)
    write_report(wish, ReportWish(), tmp_path / "out")
    page = (tmp_path / "out/report.html").read_text()
    assert '<img src="data:image/svg+xml;base64,PHN2Zy8+" alt="TTFT and rates in words">' in page
    assert "<figcaption>What it means</figcaption>" in page


def test_without_matplotlib_there_is_no_picture_and_the_page_says_so(
    wish: Wish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "DRAW_BUDGET", None)
    written = write_report(wish, ReportWish(), tmp_path / "out")
    assert [Path(each).suffix for each in written.files] == [".html", ".csv", ".json"]
    assert "plots are missing" in written.warnings[0]


@pytest.mark.parametrize(
    ("origin", "says"),
    [
        (ORIGIN, "6 sessions of 2560 tokens, the heaviest that were measured, in a KV pool of 2493464 tokens"),
        (replace(ORIGIN, profile="gone"), None),
    ],
    ids=["known", "no-profile"],
)
def test_the_heaviest_work_that_was_measured_is_marked(origin: Origin, says: str | None) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    from dspark_deploy.flow.budget_figure import budget_figure  # noqa: PLC0415  it needs the extra

    measured = sweep()
    short = tuple(cell for cell in measured.result.cells if cell.prompt <= 2048)
    drawn = budget_figure(replace(measured, origin=origin, result=replace(measured.result, cells=short)), CATALOGUE)
    assert (drawn is None) == (says is None)
    if drawn is not None and says is not None:
        assert says in drawn.caption
        assert drawn.svg.startswith(b"<?xml")
