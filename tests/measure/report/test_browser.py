"""The page as a browser shows it, on a phone and on a desk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.measure.report.browser import find_chromium, look_at, screenshot
from tests.measure.report.test_page import charts, page

SIZES = {"phone": (390, 1700), "desktop": (1280, 1900)}
SCREENSHOTS = os.environ.get("DSPARK_SCREENSHOTS")  # a folder: keep what the browser showed (docs/ has two of them)


@pytest.fixture(scope="module")
def chromium() -> str:
    found, why = find_chromium()
    if not found:
        pytest.skip(why)
    return found


@pytest.mark.parametrize("device", SIZES)
def test_the_page_is_whole_at_that_width_and_nothing_complains(chromium: str, device: str, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    html.write_text(page(), encoding="utf-8")
    width, height = SIZES[device]
    opened, complaints = look_at(chromium, html, width, height, tmp_path)
    assert opened.title == "example: measured"
    assert opened.scroll_width <= width
    assert opened.cut == []
    assert (opened.pictures, opened.broken) == (len(charts()), 0)
    assert opened.smallest_text >= 12
    assert complaints == []
    if SCREENSHOTS:
        png, _ = screenshot(chromium, html, width, height, tmp_path)
        (Path(SCREENSHOTS) / f"report-{device}.png").write_bytes(png)


def test_the_page_opens_from_disk_by_itself(chromium: str, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    html.write_text(page(), encoding="utf-8")
    png, complaints = screenshot(chromium, html, *SIZES["desktop"], tmp_path)
    assert complaints == []
    assert len(png) > 50_000  # an empty one of that size has about 5000


def test_a_browser_that_has_something_to_complain_of_is_heard(chromium: str, tmp_path: Path) -> None:
    html = tmp_path / "bad.html"
    html.write_text("<title>bad</title><p>x</p><script>console.error('wrong')</script>", encoding="utf-8")
    _, complaints = look_at(chromium, html, 390, 400, tmp_path)
    assert "wrong" in complaints[0]
