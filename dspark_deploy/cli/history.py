"""`dspark history`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import columns
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.history import HistoryReport


@click.command(short_help="Earlier runs, as the nodes tell them.")
@common_options
def history(common: Common) -> int:
    """Who changed the pair, when, to what, and how it ended; and the releases that the nodes keep.

    Read from the nodes, so that every controller sees the same. `dspark rollback` serves an earlier release again.
    """
    from dspark_deploy.flow.history import read_history
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        report = read_history(common.wish(), SystemClock(interruption))
    if common.json:
        print_envelope("history", ExitCode.OK, result=report)
    else:
        click.echo(_text(report))
    return ExitCode.OK


def _text(report: HistoryReport) -> str:
    rows = [("WHEN", "WHO", "COMMAND", "PROFILE", "FAMILY", "RELEASE", "SECONDS", "OUTCOME")]
    rows += [
        (
            entry.at,
            entry.who,
            entry.command,
            entry.profile or "-",
            entry.family or "-",
            entry.release or "-",
            f"{sum(entry.seconds.values()):.0f}" if entry.seconds else "-",
            f"{entry.outcome}: {entry.message}" if entry.message else entry.outcome,
        )
        for entry in report.entries
    ]
    lines = [columns(rows) if report.entries else f"{report.pair}: the nodes tell of no run"]
    lines += [f"kept on {' and '.join(nodes)}: {release}" for release, nodes in report.releases.items()]
    return "\n".join((*lines, *(f"{node}: not reached: {why}" for node, why in report.unreachable.items())))
