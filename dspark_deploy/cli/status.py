"""`dspark status`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.status_text import status_frame, status_line, status_text
from dspark_deploy.cli.values import duration
from dspark_deploy.errors import ExitCode, Interrupted

if TYPE_CHECKING:
    from dspark_deploy.flow.report import StatusReport

STDOUT = "-"
Show = Callable[["StatusReport"], None]


@click.command(short_help="The pair in one word, and both ranks.")
@click.option("-w", "--watch", is_flag=True, help="Look again and again until Ctrl-C.")
@click.option(
    "--every", type=duration, metavar="DURATION", default="2s", show_default=True, help="Between two looks of --watch."
)
@click.option(
    "--prometheus",
    is_flag=False,
    flag_value=STDOUT,
    metavar="[FILE]",
    help="Print Prometheus' text format, or keep it in FILE, which is replaced as a whole at every look.",
)
@common_options
def status(common: Common, watch: bool, every: float, prometheus: str | None) -> int:
    """What the pair does now, in one word: serving, booting, split, mixed, wedged, down or unknown.

    Told from the containers' labels on both nodes and from the API, which is asked for one token: an API that only
    answers proves nothing. Below it: both ranks, requests, KV use, speed, what the logs warn of, and, where the pair
    does not serve, which rank is at fault, since when, how that is known and what to type.

    Exit 0 while it serves, 5 when a node can't be reached, else 8; --watch ends with 130.
    """
    if prometheus == STDOUT and (watch or common.json):
        raise click.UsageError("--prometheus without a FILE prints its page: give a FILE with --watch or --output json")
    from dspark_deploy.flow.status import read_status, watch_status
    from dspark_deploy.remote.clock import Interruption, SystemClock

    keep = _keeper(prometheus)
    with Interruption() as interruption:
        clock = SystemClock(interruption)
        if watch:
            with closing(watch_status(common.wish(), clock, every_s=every)) as reports:
                return _watch(common, reports, keep)
        report = read_status(common.wish(), clock)
    code = code_of(report)
    keep(report)
    if prometheus != STDOUT:
        _print(common, report)
    return code


def code_of(report: StatusReport) -> ExitCode:
    """Of one look."""
    return {"serving": ExitCode.OK, "unknown": ExitCode.UNREACHABLE}.get(report.state, ExitCode.NOT_AS_WANTED)


def _print(common: Common, report: StatusReport) -> None:
    if common.json:
        print_envelope("status", code_of(report), result=report)
    else:
        click.echo(status_text(report))


def _keeper(prometheus: str | None) -> Show:
    """What is done with a look besides showing it."""
    if prometheus is None:
        return lambda _report: None
    from dspark_deploy.cli.prometheus import prometheus_text, write_prometheus

    if prometheus == STDOUT:
        return lambda report: click.echo(prometheus_text(report), nl=False)
    path = Path(prometheus)
    return lambda report: write_prometheus(report, path)


def _watch(common: Common, reports: Iterator[StatusReport], keep: Show) -> int:
    """Show every look. Only a signal ends it."""
    try:
        if not common.json and sys.stdout.isatty():
            _redraw(reports, keep)
        for report in reports:
            keep(report)
            if common.json:
                print_envelope("status", code_of(report), result=report, line=True)
            else:
                click.echo(status_line(report))
    except Interrupted:
        click.echo("the watch has ended; the pair was not touched", err=True)
    return ExitCode.INTERRUPTED


def _redraw(reports: Iterator[StatusReport], keep: Show) -> None:
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        for report in reports:
            keep(report)
            live.update(status_frame(report), refresh=True)
