"""What `up`, `switch` and `rollback` share: how long they wait, and how they show what they did."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.events import EventNarrator
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common
from dspark_deploy.cli.text import plan_text, served_text
from dspark_deploy.cli.values import duration, duration_or_zero
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.report import PairReport
    from dspark_deploy.flow.up import PlanReport
    from dspark_deploy.flow.wish import Limits

F = TypeVar("F", bound=Callable[..., Any])

LOCK_WAIT = click.option(
    "--lock-wait",
    type=duration_or_zero,
    metavar="DURATION",
    default="0",
    show_default=True,
    help="How long to wait while another run changes the pair.",
)
STALL = click.option(
    "--stall",
    type=duration,
    metavar="DURATION",
    default="15m",
    show_default=True,
    help="Give up once neither rank has shown any sign of work for so long: log, CPU time, compilers, caches.",
)
WAITS = (
    click.option(
        "--timeout",
        type=duration,
        metavar="DURATION",
        default="40m",
        show_default=True,
        help="How long to wait for the API: 90s, 40m, 2h.",
    ),
    click.option(
        "--rendezvous-timeout",
        type=duration,
        metavar="DURATION",
        default="2m",
        show_default=True,
        help="How long the worker may take until it waits for the head.",
    ),
    STALL,
    LOCK_WAIT,
)


def bring_options(command: F) -> F:
    """Options of every command that brings the pair to a release."""
    decorated: Any = command
    for option in reversed(WAITS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # the decorators keep the callable's shape but not its type


def limits_of(
    timeout: float, rendezvous_timeout: float, stall: float, lock_wait: float, *, returns: bool = True
) -> Limits:
    """Those options as flows take them."""
    from dspark_deploy.flow.wish import Limits

    return Limits(api_s=timeout, rendezvous_s=rendezvous_timeout, stall_s=stall, lock_s=lock_wait, returns=returns)


def narrator_of(common: Common) -> Narrator | EventNarrator:
    """Whoever tells what happens on standard error: words for people, a JSON object a line for programs."""
    return EventNarrator(quiet=common.quiet) if common.json else Narrator(quiet=common.quiet)


def show_plan(common: Common, command: str, plan: PlanReport | None) -> int:
    """A plan, and nothing of it taken. None: the pair is where it should be."""
    if common.json:
        print_envelope(command, ExitCode.OK, result=plan, warnings=plan.warnings if plan else ())
    else:
        click.echo(plan_text(plan) if plan else "nothing would be changed: it is so already")
    return ExitCode.OK


def show_pair(common: Common, command: str, report: PairReport) -> int:
    """What serves now, and how to call it."""
    code = ExitCode.OK if report.state == "serving" else ExitCode.NOT_AS_WANTED
    if common.json:
        print_envelope(command, code, result=report, warnings=report.warnings)
        return code
    if not report.changed and code is ExitCode.OK:
        click.echo(f"{report.pair} already serves this: nothing was changed")
    click.echo(served_text(report))
    return code
