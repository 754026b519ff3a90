"""`dspark plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.bringing import show_plan
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.workload import workload_options

if TYPE_CHECKING:
    from dspark_deploy.flow.wish import Wish


@click.command(short_help="What `up` would change, file by file.")
@common_options
@workload_options
def plan(common: Common, wish: Wish) -> int:
    """What `up` would do, without doing it; the same as `up -n`.

    The steps, each node's files against those of the release that serves, the image, how long the pair would not
    answer (from earlier runs), and every value that did not come from its usual place.
    """
    from dspark_deploy.flow.up import intend_up
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        return show_plan(common, "plan", intend_up(wish, SystemClock(interruption)))
