"""`dspark pull`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.findings import findings_text
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.values import duration
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.pull import NodePull, PullReport
    from dspark_deploy.flow.wish import Wish
    from dspark_deploy.remote.clock import Clock


@click.command(short_help="The profile's image on both nodes at once.")
@click.option("--family", help="Image family to pull, instead of the profile's own.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one value of the profile, image=NAME:TAG say.",
)
@click.option(
    "--stall",
    type=duration,
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="Give up a node's pull once no byte has come for so long.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be pulled and pull nothing.")
@common_options
def pull(common: Common, family: str | None, overrides: tuple[str, ...], stall: float, dry_run: bool) -> int:
    """Pull the profile's image on both nodes at once, and show that both have the same one then.

    By the family's digest where one is known and the registry still has it, else by the tag; compose gets the tag
    either way. `dspark up` never pulls. What was pulled before an interruption is kept by docker.

    Exit 0 when both have it and the same, 8 when a node's pull failed, 7 when the nodes differ all the same.
    """
    from dspark_deploy.remote.clock import Interruption, SystemClock

    wish = common.wish(family=family, overrides=overrides)
    with Interruption() as interruption:
        clock = SystemClock(interruption)
        if dry_run:
            return _plan(common, wish, clock)
        report = _pull(wish, clock, stall_s=stall, quiet=common.quiet)
    code = ExitCode.OK if report.same else ExitCode.DISAGREES
    if not report.complete:
        code = ExitCode.NOT_AS_WANTED
    if common.json:
        print_envelope("pull", code, result=report)
    else:
        click.echo("\n".join(_node(node, each) for node, each in report.nodes.items()))
        click.echo(findings_text(report.findings))
    return code


def _pull(wish: Wish, clock: Clock, *, stall_s: float, quiet: bool) -> PullReport:
    from dspark_deploy.cli.pulling import Pulls
    from dspark_deploy.flow.pull import pull_image

    with Pulls(quiet=quiet) as pulls:
        return pull_image(wish, clock, pulls.tell, stall_s=stall_s)


def _plan(common: Common, wish: Wish, clock: Clock) -> int:
    from dspark_deploy.flow.pull import intend_pull

    plan = intend_pull(wish, clock)
    if common.json:
        print_envelope("pull", ExitCode.OK, result=plan)
    else:
        pinned = f" ({plan.digest})" if plan.digest else ""
        click.echo(f"would pull {plan.image}{pinned} on both nodes")
        click.echo("\n".join(f"  {node} holds {held}" for node, held in plan.holds.items()))
    return ExitCode.OK


def _node(node: str, pulled: NodePull) -> str:
    if pulled.problem:
        return (
            f"{node}: {click.style(f'not pulled ({pulled.cause})', fg='red')}: {pulled.problem}\n  -> {pulled.remedy}"
        )
    what = f"{pulled.bytes / 1e6:.1f} MB in {pulled.seconds:.1f} s" if pulled.changed else "it was there already"
    return f"{node}: {what}"
