"""`dspark up`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.ask import asker
from dspark_deploy.cli.bringing import bring_options, limits_of, narrator_of, show_pair, show_plan
from dspark_deploy.cli.options import Common, change_options, common_options
from dspark_deploy.cli.workload import workload_options

if TYPE_CHECKING:
    from dspark_deploy.flow.wish import Wish


@click.command(short_help="Serve a profile on both nodes, and prove it.")
@bring_options
@change_options
@common_options
@workload_options
def up(
    common: Common,
    wish: Wish,
    timeout: float,
    rendezvous_timeout: float,
    stall: float,
    lock_wait: float,
    dry_run: bool,
    yes: bool,
) -> int:
    """Serve a profile on both nodes, and wait until it answers.

    Checks both nodes and that each has the whole model (see `dspark verify-cache`), pushes the rendered files, stops
    what an older release runs, starts the worker, waits until it is at the rendezvous, starts the head, watches both
    until the API answers with the planned model, and has it generate text twice. A second `up` of the same profile
    changes nothing and says so.

    Whatever fails is undone: what this run started is stopped on both nodes, and the release that served before
    serves again. Ctrl-C does the same until both ranks are started; after that it detaches and leaves them booting.
    """
    from dspark_deploy.flow.up import bring_up, intend_up
    from dspark_deploy.remote.clock import Interruption, SystemClock

    narrator = narrator_of(common)
    with Interruption(narrator.what_runs) as interruption:
        clock = SystemClock(interruption)
        if dry_run:
            return show_plan(common, "up", intend_up(wish, clock))
        limits = limits_of(timeout, rendezvous_timeout, stall, lock_wait)
        report = bring_up(wish, limits, narrator, clock, asker(yes=yes))
    return show_pair(common, "up", report)
