"""`dspark up`."""

from __future__ import annotations

from dataclasses import replace

import click

from dspark_deploy.cli.ask import asker
from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common, change_options, common_options
from dspark_deploy.cli.text import plan_text, served_text
from dspark_deploy.cli.values import duration
from dspark_deploy.errors import ExitCode


@click.command(short_help="Serve a profile on both nodes, and prove it.")
@click.option("--family", help="Image family to run it on, instead of the profile's own (see `dspark families`).")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one value of the profile. May be repeated.",
)
@click.option(
    "--timeout",
    type=duration,
    metavar="DURATION",
    default="40m",
    show_default=True,
    help="How long to wait for the API: 90s, 40m, 2h.",
)
@click.option(
    "--rendezvous-timeout",
    type=duration,
    metavar="DURATION",
    default="2m",
    show_default=True,
    help="How long the worker may take until it waits for the head.",
)
@click.option(
    "--skip",
    multiple=True,
    metavar="ID",
    help="Go on though this check fails (see `dspark doctor`). Recorded. May be repeated.",
)
@click.option("--online", is_flag=True, help="Start with incomplete caches: each node downloads what it lacks. Asks.")
@change_options
@common_options
def up(
    common: Common,
    family: str | None,
    overrides: tuple[str, ...],
    timeout: float,
    rendezvous_timeout: float,
    skip: tuple[str, ...],
    online: bool,
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
    from dspark_deploy.flow.wish import Limits
    from dspark_deploy.remote.clock import Interruption, SystemClock

    narrator = Narrator(quiet=common.quiet)
    wish = replace(common.wish(family=family, overrides=overrides), online=online, skip=skip)
    with Interruption(narrator.what_runs) as interruption:
        clock = SystemClock(interruption)
        if dry_run:
            plan = intend_up(wish, clock)
            if common.json:
                print_envelope("up", ExitCode.OK, result=plan, warnings=plan.warnings)
            else:
                click.echo(plan_text(plan))
            return ExitCode.OK
        report = bring_up(wish, Limits(timeout, rendezvous_timeout), narrator, clock, asker(yes=yes))
    if common.json:
        print_envelope("up", ExitCode.OK, result=report, warnings=report.warnings)
    else:
        if not report.changed:
            click.echo(f"{report.pair} already serves this release: nothing was changed")
        click.echo(served_text(report))
    return ExitCode.OK
