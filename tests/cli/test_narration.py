"""What people and programs are told while a pair boots, on a terminal and off it."""

from __future__ import annotations

import io
import json
import time
from dataclasses import replace
from typing import Any

import click
import pytest
from rich.console import Console

from dspark_deploy.boot.phases import ABOUT
from dspark_deploy.cli.events import EventNarrator
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.progress import SAY_S, Cadence, clock, drawing, progress_line
from dspark_deploy.cli.running import Running
from dspark_deploy.watch.progress import BootProgress, RankProgress

HEAD = RankProgress(
    node="head",
    phase="weights",
    title="loading weights",
    percent=31,
    elapsed_s=65,
    in_phase_s=47,
    usual_s=152,
    left_s=200,
    quiet_s=2,
    quiet_limit_s=300,
    ready=False,
)
WORKER = replace(HEAD, node="worker", phase="load", percent=None, left_s=110, quiet_s=47)
BOOT = BootProgress(elapsed_s=65, left_s=200, learned_from=0, ranks=(HEAD, WORKER))


def drawn(boot: BootProgress, width: int, **how: Any) -> str:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, **how)
    console.print(drawing(boot, console))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_line_tells_both_ranks_what_is_normal_and_what_is_left() -> None:
    line = progress_line(BOOT)
    assert "+1:05 head loading weights 31 % for 0:47 (usually 2:32)" in line
    assert "worker loading weights for 0:47" in line
    assert "silent for 0:47, normal up to 5:00" in line
    assert line.endswith("about 3:20 left, as published")


def test_silence_beyond_what_is_normal_is_called_so() -> None:
    assert "longer than the usual 5:00" in progress_line(replace(BOOT, ranks=(replace(HEAD, quiet_s=400),)))


def test_times_learned_from_earlier_runs_are_called_so() -> None:
    assert progress_line(replace(BOOT, learned_from=3)).endswith("as in 3 earlier runs")
    assert progress_line(replace(BOOT, learned_from=1)).endswith("as in 1 earlier run")


def test_a_line_is_due_at_a_new_phase_and_never_later_than_ten_seconds() -> None:
    cadence = Cadence()
    assert cadence.due(BOOT, 0)
    assert not cadence.due(BOOT, 5)
    other = replace(BOOT, ranks=(replace(HEAD, phase="draft"), WORKER))
    assert cadence.due(other, 5)
    assert not cadence.due(BOOT, 5.5), "phases that fly by are not told one by one"
    assert cadence.due(other, 5 + SAY_S)
    assert SAY_S < 10


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("how", [{}, {"no_color": True}, {"color_system": None}], ids=["colour", "NO_COLOR", "plain"])
def test_the_panel_fits_its_terminal_and_stays_readable(width: int, how: dict[str, Any]) -> None:
    console = Console(width=width)
    plain = "".join(segment.text for segment in console.render(drawing(BOOT, console)))
    assert all(len(line) <= width for line in plain.splitlines())
    for word in ("head", "worker", "loading weights 31 %", "0:47 of 2:32", "3:20 left"):
        assert word in plain
    if how:
        assert "\x1b[3" not in drawn(BOOT, width, **how)


def test_the_longest_phase_still_takes_one_line_of_a_narrow_terminal() -> None:
    titles = max((about.title for about in ABOUT.values()), key=len)
    long = replace(HEAD, title=titles, percent=None, in_phase_s=754, usual_s=754, left_s=754, quiet_s=0)
    console = Console(width=80)
    text = "".join(segment.text for segment in console.render(drawing(replace(BOOT, ranks=(long,)), console)))
    assert len(text.splitlines()) == 2, text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_the_panel_can_be_written_in_any_encoding(encoding: str) -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, force_terminal=True, width=120)
    console.print(drawing(BOOT, console))
    progress_line(BOOT).encode("ascii")


def test_a_step_without_an_end_is_ended_before_the_error_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with click.Context(click.Command("up")):
        narrator = Narrator()
        narrator.begin(2)
        narrator.started("start the head")
    assert capsys.readouterr().err == "[1/2] start the head ...\n"


def test_off_a_terminal_progress_is_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    narrator = Narrator()
    monkeypatch.setattr("dspark_deploy.cli.narrator.FIRST_S", 0)
    narrator.begin(1)
    narrator.started("wait until the API answers")
    narrator.progress(BOOT)
    narrator.progress(BOOT)
    narrator.finished("there")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["[1/1]", "", "[1/1]"]
    assert "loading weights" in lines[1]


def test_events_are_one_json_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    narrator = EventNarrator()
    narrator.begin(1)
    narrator.started("start the worker")
    narrator.progress(BOOT)
    narrator.warn("look out")
    narrator.finished("there")
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [each["event"] for each in told] == ["steps", "step-started", "boot", "warning", "step-finished"]
    assert told[2]["ranks"][0]["percent"] == 31
    assert all(each["at"] for each in told)


def test_what_may_run_is_told_in_words() -> None:
    running = Running()
    assert running.words() == ""
    running.began("stop spark-pair-vllm-1 on head (release 0123)")
    assert running.words() == "spark-pair-vllm-1 on the head, which was being stopped"
    running.ended()
    running.began("start the worker")
    running.ended()
    running.began("start the head")
    assert (
        running.words()
        == "the worker's rank, which this run has started, and the head's rank, which this run has started"
    )
    down = Running()
    down.began("stop the worker")
    assert down.words() == "a rank of the pair on the worker, which was being stopped"


def test_minutes_and_seconds() -> None:
    assert [clock(seconds) for seconds in (0, 9.9, 60, 3725)] == ["0:00", "0:09", "1:00", "62:05"]


def test_a_step_that_says_nothing_for_long_is_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dspark_deploy.cli.narrator.SAY_S", 0.02)
    monkeypatch.setattr("dspark_deploy.cli.narrator.BEAT_S", 0.01)
    with click.Context(click.Command("up")):
        narrator = Narrator()
        narrator.started("stop the head")
        said = ""
        for _ in range(500):
            said += capsys.readouterr().err
            if "still: stop the head" in said:
                break
            time.sleep(0.01)
    assert "still: stop the head" in said
