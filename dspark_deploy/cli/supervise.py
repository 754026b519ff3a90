"""`dspark supervise`."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from dspark_deploy import __version__
from dspark_deploy.cli.bringing import LOCK_WAIT, WAITS, limits_of
from dspark_deploy.cli.envelope import plain, print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.values import duration
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.supervise import Said

F = TypeVar("F", bound=Callable[..., Any])


def _every(name: str, default: str, text: str) -> Callable[[F], F]:
    return click.option(name, type=duration, metavar="DURATION", default=default, show_default=True, help=text)


POLICY = (
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=3,
        show_default=True,
        help="Give up after so many restarts within --window, or so many failed ones in a row.",
    ),
    _every("--window", "1h", "The time in which restarts are counted."),
    _every("--backoff", "30s", "Pause before the second restart; doubled before each further one, up to 15m."),
    _every("--wedge-after", "10m", "Restart a pair that is asked for something and shows no sign of life for so long."),
    _every("--canary-every", "5m", "Ask an idle pair for one token so often."),
    _every("--turn", "5s", "Look at the pair so often; what the engines tell is acted on at once."),
)


def policy_options(command: F) -> F:
    """When it restarts, how often, and how long it waits for a start."""
    decorated: Any = command
    for option in reversed((*POLICY, *(each for each in WAITS if each is not LOCK_WAIT))):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # the decorators keep the callable's shape but not its type


@click.command(short_help="Keep what is meant to serve serving: the one owner of restarts.")
@policy_options
@click.option("--print-unit", is_flag=True, help="Print a systemd unit that runs this command line, and do nothing.")
@click.option("-n", "--dry-run", is_flag=True, help="Look once, say what would be done, and do nothing.")
@common_options
def supervise(
    common: Common,
    limit: int,
    window: float,
    backoff: float,
    wedge_after: float,
    canary_every: float,
    turn: float,
    timeout: float,
    rendezvous_timeout: float,
    stall: float,
    print_unit: bool,
    dry_run: bool,
) -> int:
    """Keep the pair serving what it is meant to serve, until it is ended by Ctrl-C or SIGTERM.

    What is meant is what the last `up`, `switch` or `rollback` was proved to serve; after a `down` nothing is. A rank
    that dies, a node or a docker daemon that comes back without it, a pair that generates nothing though it is asked:
    both ranks are stopped and started again, worker first, from the files that the nodes keep. A long prefill is no
    standstill. Any other run goes first: while it holds the lock, nothing is done.

    Its lines say what it does and why; with --output json one object a line. Exit 8 once it gives up.
    """
    from dspark_deploy.flow.supervise import intend_supervise
    from dspark_deploy.flow.supervise import supervise as keep_serving
    from dspark_deploy.plan.supervision import Policy
    from dspark_deploy.remote.clock import Interruption, SystemClock

    wish = common.wish()
    if print_unit:
        return _print_unit(common)
    policy = Policy(
        limit=limit,
        window_s=window,
        backoff_s=backoff,
        wedge_s=wedge_after,
        stall_s=stall,
        canary_s=canary_every,
    )
    with Interruption() as interruption:
        clock = SystemClock(interruption)
        if dry_run:
            return _show_intended(common, intend_supervise(wish, policy, clock))
        limits = limits_of(timeout, rendezvous_timeout, stall, 0.0)
        return keep_serving(wish, policy, limits, lambda said: _show(common, said), clock, turn_s=turn)


def _show(common: Common, said: Said) -> None:
    click.echo(json.dumps(plain(said)) if common.json else f"{said.at} {said.kind:<9} {said.text}")


def _show_intended(common: Common, intended: Said) -> int:
    if common.json:
        print_envelope("supervise", ExitCode.OK, result=intended)
    else:
        click.echo(f"now it would say: {intended.kind} {intended.text}")
    return ExitCode.OK


def _print_unit(common: Common) -> int:
    from dspark_deploy.flow.intention import load_inventory_of, read_settings
    from dspark_deploy.render.unit import Unit, unit_file

    wish = common.wish()
    inventory = (wish.directory / read_settings(wish).inventory).resolve()
    unit = Unit(
        pair=load_inventory_of(wish).name,
        user=getpass.getuser(),
        directory=inventory.parent,
        argv=(sys.executable, "-m", "dspark_deploy", "supervise", "--inventory", str(inventory), *_given(common)),
    )
    click.echo(unit_file(unit, tool=__version__), nl=False)
    return ExitCode.OK


def _given(common: Common) -> list[str]:
    """The options of this command line that its unit needs too, as words."""
    words: list[str] = []
    if common.ssh_config is not None:
        words += ["--ssh-config", str(common.ssh_config.resolve())]
    words += ["--accept-new-host-keys"] if common.accept_new_host_keys else []
    words += ["--output", "json"] if common.json else []
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        value = context.params.get(option.name or "")
        if given and isinstance(value, float):
            words += [option.opts[0], f"{value:g}s"]
        elif given and isinstance(value, int) and not isinstance(value, bool):
            words += [option.opts[0], str(value)]
    return words
