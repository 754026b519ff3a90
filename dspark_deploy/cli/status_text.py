"""`status` as text, as a line where it is repeated off a terminal, and as a frame of a given width where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.status_rows import Row, Tone, headline, status_rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dspark_deploy.flow.report import StatusReport

LABEL = 8  # columns
COLOURS: dict[Tone, str | None] = {"": None, "good": "green", "bad": "red", "warn": "yellow"}


def status_text(report: StatusReport) -> str:
    """One row a line, whatever its length."""
    head = headline(report)
    lines = [f"{head.label}: {click.style(head.text, fg=COLOURS[head.tone], bold=True)}"]
    lines += [f"  {row.label:<{LABEL}}  {click.style(row.text, fg=COLOURS[row.tone])}" for row in status_rows(report)]
    return "\n".join(lines)


def status_line(report: StatusReport) -> str:
    """One look in a line, for a log or a pipe."""
    parts = [report.at, report.pair, str(report.state)]
    parts += [f"{rank.node} {rank.state}" for rank in report.ranks if rank.state != "running"]
    load = report.load
    if load is not None:
        parts.append(f"{load.running} running, {load.waiting} waiting, KV {100 * load.kv_usage:.1f} %")
        if load.prompt_tps is not None and load.generation_tps is not None:
            parts.append(f"prompt {load.prompt_tps:.1f} tokens/s, output {load.generation_tps:.1f} tokens/s")
    parts += [f"{trouble.facts[0]} -> {trouble.remedy}" for trouble in report.troubles if trouble.facts]
    if report.stand_in:
        parts.append("(a rehearsal's stand-in)")
    return "  ".join(parts)


def status_frame(report: StatusReport) -> RenderableType:
    """One look for a terminal, as wide as that is: long sentences wrap below themselves."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    def styled(row: Row) -> Text:
        return Text(row.text, style=COLOURS[row.tone] or "", overflow="fold")

    head = headline(report)
    title = Text.assemble(f"{head.label}: ", (head.text, f"bold {COLOURS[head.tone]}"), (f"   {report.at}", "dim"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=LABEL)
    grid.add_column(overflow="fold")
    for row in status_rows(report):
        grid.add_row(f"  {row.label}", styled(row))
    return Group(title, grid, Text("Ctrl-C ends the watch, and nothing else", style="dim"))


def frame_text(report: StatusReport, *, width: int, colour: bool = False) -> str:
    """The same as text: for captures and tests."""
    from rich.console import Console

    console = Console(width=width, force_terminal=colour, color_system="standard" if colour else None, highlight=False)
    with console.capture() as captured:
        console.print(status_frame(report))
    return captured.get()
