"""`dspark unlock`."""

from __future__ import annotations

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.errors import ExitCode


@click.command(short_help="End a run that holds the pair's lock.")
@common_options
def unlock(common: Common) -> int:
    """End whoever holds the lock of the pair on either node, and say who it was.

    A lock is never stale: it is free as soon as its run is gone, or 30 s after its connection was cut. So this ends a
    live run; that run stops where it is and undoes nothing.
    """
    from dspark_deploy.flow.unlock import unlock_pair
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        report = unlock_pair(common.wish(), SystemClock(interruption))
    code = ExitCode.NOT_AS_WANTED if report.unreachable else ExitCode.OK
    if common.json:
        print_envelope("unlock", code, result=report)
        return code
    for node, owner in report.ended.items():
        if owner is None:
            click.echo(f"{node}: nobody held the lock")
        else:
            who, what = owner.get("who", "an unknown user"), owner.get("command", "a run")
            click.echo(f"{node}: ended `{what}` of {who}, since {owner.get('since', 'an unknown time')}")
    for node, why in report.unreachable.items():
        click.echo(f"{node}: not reached: {why}")
    return code
