"""`dspark logs`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import plain
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.values import duration, pattern
from dspark_deploy.errors import ExitCode, Interrupted

if TYPE_CHECKING:
    from dspark_deploy.flow.ranklines import RankLine

COLOURS = {"head": "cyan", "worker": "magenta"}


@click.command(short_help="What both ranks print, merged on time.")
@click.argument("node", required=False, type=click.Choice(["head", "worker"]))
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines, across the ends and restarts of the ranks.")
@click.option(
    "--since", type=duration, metavar="DURATION", help="Only lines of the last 30s, 5m, 2h; by each node's own clock."
)
@click.option("--tail", type=click.IntRange(min=0), help="Last lines of each rank. Default: 200, or all with --since.")
@click.option("--grep", type=pattern, metavar="REGEX", help="Only lines that match this regular expression.")
@click.option("--raw", is_flag=True, help="The lines as the ranks printed them, without a prefix.")
@common_options
def logs(
    common: Common,
    node: str | None,
    follow: bool,
    since: float | None,
    tail: int | None,
    grep: re.Pattern[str] | None,
    raw: bool,
) -> int:
    """What both ranks printed, merged on time, each line marked with its node.

    Each node's clock is compared with this machine's first, so that the order is right where they differ. With
    --follow a line `[dspark: ...]` tells when a rank ended or a new one runs, which is followed then; a minute after
    no rank runs any more it ends. With --raw such lines go to standard error.

    With --output json one object a line. Exit 8 where no rank has a container, or none runs any more.
    """
    from dspark_deploy.flow.logs import read_logs
    from dspark_deploy.flow.ranklines import LogQuery
    from dspark_deploy.remote.clock import Interruption, SystemClock

    query = LogQuery(
        nodes=(node,) if node else ("head", "worker"),
        follow=follow,
        since_s=since,
        tail=tail if tail is not None or since is not None else 200,
        pattern=grep,
    )
    with Interruption() as interruption:
        try:
            for line in read_logs(common.wish(), query, SystemClock(interruption)):
                _print(line, common, raw=raw)
        except Interrupted:
            if not follow:
                raise
            click.echo("no longer followed; the pair was not touched", err=True)
            return ExitCode.INTERRUPTED
    return ExitCode.NOT_AS_WANTED if follow else ExitCode.OK


def _print(line: RankLine, common: Common, *, raw: bool) -> None:
    if common.json:
        click.echo(json.dumps(plain(line)))
    elif raw:
        click.echo(line.text, err=line.by_dspark)
    else:
        text = click.style(line.text, dim=True) if line.by_dspark else line.text
        click.echo(f"{click.style(f'{line.node:<6} |', fg=COLOURS[line.node])} {text}")
