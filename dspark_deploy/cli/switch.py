"""`dspark switch`."""

from __future__ import annotations

import click

from dspark_deploy.cli.ask import asker
from dspark_deploy.cli.bringing import bring_options, limits_of, narrator_of, show_pair, show_plan
from dspark_deploy.cli.options import Common, change_options, common_options


@click.command(short_help="Serve the same profile on another image family.")
@click.argument("family")
@click.option("--no-return", is_flag=True, help="Leave what failed for study, instead of bringing back what served.")
@bring_options
@change_options
@common_options
def switch(
    common: Common,
    family: str,
    no_return: bool,
    timeout: float,
    rendezvous_timeout: float,
    stall: float,
    lock_wait: float,
    dry_run: bool,
    yes: bool,
) -> int:
    """Serve what serves now on FAMILY (see `dspark families`): its image, paths, flags and switches.

    The target is checked completely while the old one serves. If the new one does not come up or fails its proof, the
    release that served before serves again. Already on FAMILY: nothing is changed.
    """
    from dspark_deploy.flow.switch import intend_switch, switch_family
    from dspark_deploy.remote.clock import Interruption, SystemClock

    narrator = narrator_of(common)
    limits = limits_of(timeout, rendezvous_timeout, stall, lock_wait, returns=not no_return)
    with Interruption(narrator.what_runs) as interruption:
        clock = SystemClock(interruption)
        if dry_run:
            return show_plan(common, "switch", intend_switch(common.wish(), family, clock))
        report = switch_family(common.wish(), family, limits, narrator, clock, asker(yes=yes))
    return show_pair(common, "switch", report)
