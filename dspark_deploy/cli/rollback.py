"""`dspark rollback`."""

from __future__ import annotations

import click

from dspark_deploy.cli.ask import asker
from dspark_deploy.cli.bringing import bring_options, limits_of, narrator_of, show_pair, show_plan
from dspark_deploy.cli.options import Common, change_options, common_options


@click.command(short_help="Serve an earlier release again.")
@click.argument("release", required=False)
@bring_options
@change_options
@common_options
def rollback(
    common: Common,
    release: str | None,
    timeout: float,
    rendezvous_timeout: float,
    stall: float,
    lock_wait: float,
    dry_run: bool,
    yes: bool,
) -> int:
    """Serve RELEASE, or the one that served before what serves now. Both nodes still have to keep it.

    Nothing is rendered: the files are the release's own. `dspark history` lists what is kept; the beginning of an id
    is enough. What fails is undone, as in `up`.
    """
    from dspark_deploy.flow.history import intend_rollback, roll_back
    from dspark_deploy.remote.clock import Interruption, SystemClock

    narrator = narrator_of(common)
    limits = limits_of(timeout, rendezvous_timeout, stall, lock_wait)
    with Interruption(narrator.what_runs) as interruption:
        clock = SystemClock(interruption)
        if dry_run:
            return show_plan(common, "rollback", intend_rollback(common.wish(), release, clock))
        report = roll_back(common.wish(), release, limits, narrator, clock, asker(yes=yes))
    return show_pair(common, "rollback", report)
