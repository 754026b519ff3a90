"""`dspark rehearse`."""

from __future__ import annotations

import math
import os
import shutil
from typing import Any

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.group import cli, main
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.spoken import spoken_as
from dspark_deploy.cli.text import columns
from dspark_deploy.errors import ConfigError, ExitCode

PROGRAM = "dspark rehearse"
API_PORT = "--api-port"
MAKES_ONE = "init"  # the command that writes an inventory: it is given the ssh config alone


class TimeScale(click.FloatRange):
    """A number in a range: `nan`, which is neither below nor above anything, is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number


@click.command(
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Any command, no Sparks.",
)
@click.option("--scenario", "name", help="What is broken from the start; --list shows all. Default: nothing.")
@click.option(
    "--time-scale",
    type=TimeScale(min=0.01, max=1_000_000),
    metavar="X",
    help="What takes X seconds on a real pair takes one. Default: 60, so that a boot takes about 5 s.",
)
@click.option("--list", "listed", is_flag=True, help="List the scenarios.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@common_options
def rehearse(common: Common, name: str | None, time_scale: float | None, listed: bool, command: tuple[str, ...]) -> int:
    """Run COMMAND against an embedded pair: no Sparks, no Docker, no network.

    \b
      dspark rehearse up -p agent-1m                    start it on two stand-in nodes
      dspark rehearse status                            the same pair, from any terminal
      dspark rehearse --scenario worker-dies-loading up what a broken node looks like
      dspark rehearse stop                              end the pair and remove all of it

    The pair is one background process that stays up until `stop`. Each node is reached by SSH and has a Docker engine
    of its own; what serves is a stand-in without a model, which boots, logs, answers and fails as vLLM does, in a
    sixtieth of the time.
    """
    if listed:
        return _list(common)
    if not command:
        raise click.UsageError("name the command to rehearse, `up` for example; or say --list or stop")
    word, *words = command
    if word == stop.name:
        code: int = stop.main(words, "dspark rehearse stop", standalone_mode=False, obj=common)
        return code
    if word == "rehearse":
        raise ConfigError("a rehearsal can't be rehearsed", remedy="say `dspark rehearse` once")
    if word not in cli.commands:
        raise click.UsageError(f"No such command {word!r}.")  # before anything is started for it
    return _run(common, name, time_scale, command)


@click.command()
@common_options
def stop(common: Common) -> int:
    """End the embedded pair and remove all of it."""
    from dspark_deploy.flow.rehearse import stop_rehearsal
    from dspark_deploy.remote.clock import SystemClock

    ended = stop_rehearsal(common.wish(), SystemClock())
    if common.json:
        print_envelope("rehearse", ExitCode.OK, result={"stopped": ended})
    else:
        click.echo(
            "no rehearsal pair is up: nothing to stop" if ended is None else f"ended the rehearsal pair ({ended})"
        )
    return ExitCode.OK


def _run(common: Common, name: str | None, time_scale: float | None, command: tuple[str, ...]) -> int:
    from dspark_deploy.flow.rehearse import open_rehearsal
    from dspark_deploy.remote.clock import Interruption, SystemClock

    _refuse_another_pair(common, command)
    with Interruption() as interruption:
        opened = open_rehearsal(
            common.wish(),
            Narrator(quiet=common.quiet),
            SystemClock(interruption),
            name=name,
            time_scale=time_scale,
        )
    if shutil.which("ssh") is None:
        os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{opened.programs}"
    # Last, so that they hold whatever stands before.
    own = ["--ssh-config", str(opened.ssh_config)]
    if command[0] != MAKES_ONE:
        own += ["--inventory", str(opened.inventory)]
    elif API_PORT not in {word.partition("=")[0] for word in command}:
        own += [API_PORT, str(opened.api_port)]  # the usual one may be taken: the head is this machine
    with spoken_as(PROGRAM, cli.commands.keys() - {"rehearse"}):
        return main([*_again(common), *command, *own], program=PROGRAM)


def _refuse_another_pair(common: Common, command: tuple[str, ...]) -> None:
    """An inventory of the user's would either be ignored or be taken: neither is what a rehearsal means."""
    words = [word.partition("=")[0] for word in command]
    if command[0] == MAKES_ONE and "--ssh-config" not in words and not common.ssh_config:
        return
    named = {"--inventory", "--ssh-config"} & set(words)
    if named or common.inventory or common.ssh_config or any(word.startswith("-i") for word in words):
        raise ConfigError(
            "a rehearsal brings its own inventory and ssh config",
            remedy="leave -i and --ssh-config out, or run the command without `rehearse`",
        )


def _again(common: Common) -> list[str]:
    """The common options that stood before COMMAND, for the command itself."""
    words = ["-v"] * common.verbose
    words += ["--quiet"] if common.quiet else []
    words += ["--profile", common.profile] if common.profile else []
    words += ["--inventory", str(common.inventory)] if common.inventory else []
    words += ["--output", common.output] if common.output else []
    return words


def _list(common: Common) -> int:
    from dspark_deploy.flow.rehearse import list_scenarios

    lines = list_scenarios()
    if common.json:
        print_envelope("rehearse", ExitCode.OK, result=lines)
    else:
        rows = [("SCENARIO", "UP ENDS", "ABOUT"), *((each.name, f"exit {each.up}", each.about) for each in lines)]
        click.echo(columns(rows))
    return ExitCode.OK
