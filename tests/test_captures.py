"""The pictures in docs/captures, and the little terminal that they were taken with."""

from __future__ import annotations

import pytest

from tools.captures import CAPTURES, FOLDER, WIDTHS, Screen, fixed

NAMES = [f"{capture.name}-{width}" for capture in CAPTURES for width in WIDTHS]


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_is_there_as_text_and_as_svg_and_fits_its_terminal(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text()
    assert text.startswith("$ dspark ")
    assert max(len(line) for line in text.splitlines()) <= int(name.rpartition("-")[2])
    svg = (FOLDER / f"{name}.svg").read_text()
    assert svg.startswith("<svg")
    assert "https://" not in svg, "it would fetch something from elsewhere"


def test_nothing_else_lies_there() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(NAMES)


def test_what_is_redrawn_replaces_what_stood_there() -> None:
    screen = Screen("$ prompt")
    screen.feed("one\r\nold\r\n")
    screen.feed("\x1b[1A\x1b[2K\x1b[31mnew\x1b[0m\r\nnext")
    assert screen.lines == ["$ prompt", "one", "\x1b[31mnew\x1b[0m", "next"]
    assert screen.shows("^new$")
    assert not screen.shows("old")


def test_a_sequence_that_is_cut_in_two_is_read_whole() -> None:
    screen = Screen("$ prompt")
    screen.feed("one\x1b[3")
    screen.feed("1mtwo\x1b[0m")
    assert screen.lines[1] == "one\x1b[31mtwo\x1b[0m"


def test_what_is_only_this_machines_is_put_to_fixed_values() -> None:
    line = "process 31708, since 2026-11-30T20:18:20+00:00, http://127.0.0.1:37639 /tmp/dspark-captures-ab12/.local/x"
    assert fixed(line) == "process 4242, since 2026-09-01T10:00:00+00:00, http://127.0.0.1:40001 ~/.local/x"
