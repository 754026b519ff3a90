"""`dspark verify-cache`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.findings import findings_text
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import error_text
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.verify_cache import CacheReport
    from dspark_deploy.flow.wish import Wish
    from dspark_deploy.remote.clock import Clock


@click.command("verify-cache")
@click.option("--deep", is_flag=True, help="Hash every file against its name. Goes on where an earlier run stopped.")
@common_options
def verify_cache(common: Common, deep: bool) -> int:
    """Is the model whole on both nodes, and the same?

    Looks at every file's size and every shard's header, follows links as the container will, and changes nothing.
    `dspark up` does the same before it starts anything. Says for each node absent, other-revision, downloading,
    partial, wrong-size, corrupt, link-leaves-mount, unreadable, nodes-differ or complete, and what to type.

    Exit 0 when both are complete and equal, 7 when not, 5 when a node can't be reached (the other is told).
    """
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        report = _verify(common.wish(), SystemClock(interruption), deep=deep, quiet=common.quiet)
    code = ExitCode.OK if report.complete else ExitCode.DISAGREES
    if report.unreachable:
        code = ExitCode.UNREACHABLE
    if common.json:
        result = {name: getattr(report, name) for name in report.__dataclass_fields__ if name != "unreachable"}
        print_envelope("verify-cache", code, result=result, errors=report.unreachable)
    else:
        words = ", ".join(f"{node} {cache.verdict}" for node, cache in report.nodes.items())
        click.echo(f"{report.model}: {click.style(words, fg='green' if report.complete else 'red', bold=True)}")
        click.echo(findings_text(report.findings))
    for error in report.unreachable:
        click.echo(error_text(error), err=True)
    return code


def _verify(wish: Wish, clock: Clock, *, deep: bool, quiet: bool) -> CacheReport:
    from dspark_deploy.flow.verify_cache import verify_cache as verify

    if not deep:
        return verify(wish, clock)
    from dspark_deploy.cli.hashing import Bars

    with Bars(quiet=quiet) as bars:
        return verify(wish, clock, deep=bars.tell)
