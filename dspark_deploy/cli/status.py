"""`dspark status`."""

from __future__ import annotations

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import pair_text
from dspark_deploy.errors import ExitCode


@click.command(short_help="The pair in one word, and both ranks.")
@common_options
def status(common: Common) -> int:
    """What the pair does now, in one word: serving, booting, split, mixed, wedged, down or unknown.

    Told from the containers' labels on both nodes and from the API, which is asked for one token: an API that only
    answers proves nothing. Exit 0 while it serves, 5 when a node can't be reached, else 8.
    """
    from dspark_deploy.flow.status import read_status
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        report = read_status(common.wish(), SystemClock(interruption))
    code = {"serving": ExitCode.OK, "unknown": ExitCode.UNREACHABLE}.get(report.state, ExitCode.NOT_AS_WANTED)
    if common.json:
        print_envelope("status", code, result=report)
    else:
        click.echo(pair_text(report))
    return code
