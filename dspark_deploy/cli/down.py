"""`dspark down`."""

from __future__ import annotations

import click

from dspark_deploy.cli.bringing import LOCK_WAIT
from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import down_text
from dspark_deploy.errors import ExitCode


@click.command(short_help="End the pair, and prove that nothing is left.")
@LOCK_WAIT
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be stopped and stop nothing.")
@common_options
def down(common: Common, lock_wait: float, dry_run: bool) -> int:
    """End the pair: the head, then the worker, each confirmed gone.

    Everything that carries the pair's label is stopped and removed, on every node that can be reached; a node that
    can't be is named and makes the exit code 8. Nothing to stop is exit 0. What ranks leave besides is named: memory
    that does not come back, shared memory, whoever still holds the GPU. Rendered files stay on the nodes.
    """
    from dspark_deploy.flow.down import intend_down, take_down
    from dspark_deploy.remote.clock import Interruption, SystemClock

    narrator = Narrator(quiet=common.quiet)
    with Interruption(narrator.what_runs) as interruption:
        clock = SystemClock(interruption)
        if dry_run:
            plan = intend_down(common.wish(), clock)
            if common.json:
                print_envelope("down", ExitCode.OK, result=plan)
            else:
                lines = [f"{node}: would stop {', '.join(names) or 'nothing'}" for node, names in plan.stops.items()]
                click.echo("\n".join((*lines, *(f"{node}: {why}" for node, why in plan.unreachable.items()))))
            return ExitCode.OK
        report = take_down(common.wish(), narrator, clock, lock_wait_s=lock_wait)
    code = ExitCode.OK if report.clean else ExitCode.NOT_AS_WANTED
    if common.json:
        print_envelope("down", code, result=report)
    else:
        click.echo(down_text(report))
    return code
