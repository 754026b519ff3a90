"""`dspark watch`."""

from __future__ import annotations

import click

from dspark_deploy.cli.bringing import STALL
from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.events import EventNarrator
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import served_text
from dspark_deploy.cli.values import duration
from dspark_deploy.errors import ExitCode


@click.command(short_help="Attach to a boot and show how far it is.")
@click.option(
    "--timeout",
    type=duration,
    metavar="DURATION",
    default="40m",
    show_default=True,
    help="How long to watch: 90s, 40m, 2h.",
)
@STALL
@common_options
def watch(common: Common, timeout: float, stall: float) -> int:
    """Show how far the pair's boot is, from any machine, whoever began it.

    What `up` shows while it waits: phase, percent and time left of both ranks; the cause as soon as one fails. Once the
    pair serves, a boot that an `up` began and left is noted in its history. Ctrl-C only ends the watching.

    With --output json one object a line: events as they come, the result last. Exit 0 once it serves, 8 when nothing
    runs or the boot fails.
    """
    from dspark_deploy.flow.watch import watch_boot
    from dspark_deploy.flow.wish import Limits
    from dspark_deploy.remote.clock import Interruption, SystemClock

    narrator = EventNarrator(quiet=common.quiet, on_stdout=True) if common.json else Narrator(quiet=common.quiet)
    with Interruption() as interruption:
        report = watch_boot(common.wish(), Limits(api_s=timeout, stall_s=stall), narrator, SystemClock(interruption))
    if common.json:
        print_envelope("watch", ExitCode.OK, result=report)
    else:
        click.echo(served_text(report))
    return ExitCode.OK
