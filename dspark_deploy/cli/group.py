"""The `dspark` command: its group, and the one place where errors become text and an exit code."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import traceback
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import click

from dspark_deploy import __version__
from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.output import OutputFailed, checked_output, give_up_output
from dspark_deploy.cli.spoken import spoken_as
from dspark_deploy.cli.text import error_text
from dspark_deploy.errors import ConfigError, DsparkError, ExitCode, Interrupted

PROGRAM = "dspark"
WITHOUT_INVENTORY = {"rehearse", "init", "explain"}  # commands that bring, write or need none


class Commands(click.Group):
    """Commands in the order in which they are met, not in the alphabet's."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See click.Group."""
        del ctx
        return list(self.commands)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dspark")
@common_options
@click.pass_context
def cli(context: click.Context, common: Common) -> None:
    """Serve DeepSeek-V4-Flash with vLLM on a pair of DGX Sparks, and know that it does.

    \b
    Describe the pair once in inventory.yaml; `dspark init HEAD WORKER` looks and writes it. Then:
      dspark up --profile agent-1m    start it: worker first, then head, and prove that it answers
      dspark status                   what the pair does now
      dspark logs -f                  what both ranks print
      dspark down                     end it, and prove that nothing is left

    \b
    Exit codes: 0 done, 1 a fault of ours, 2 usage or configuration, 3 a check refused and nothing changed,
    4 the launch failed and was undone, 5 a node can't be reached, 6 another run holds the lock,
    7 a verification says no, 8 the pair is not as wanted, 130 interrupted.
    """
    context.obj = common


def main(arguments: list[str] | None = None, *, program: str = PROGRAM) -> int:
    """Run one command line and return its exit code. Nothing above this sees an exception.

    `program` is what stands before those arguments where they are typed.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        with checked_output(), _spoken_for(arguments, program):
            return _run(arguments, program, as_json=_wants_json(arguments))
    except OutputFailed as error:  # also while another error was told
        give_up_output()
        _say(error)
        return error.code


def _spoken_for(arguments: list[str], program: str) -> AbstractContextManager[None]:
    """Hints name the inventory that this command line names: pasted, they must not meet another pair."""
    named = _named_inventory(arguments)
    if named is None or program != PROGRAM:
        return nullcontext()
    return spoken_as(f"{PROGRAM} -i {shlex.quote(named)}", cli.commands.keys() - WITHOUT_INVENTORY)


def _run(arguments: list[str], program: str, *, as_json: bool) -> int:
    try:
        code = cli.main(args=arguments, prog_name=program, standalone_mode=False)
    except OutputFailed:
        raise
    except DsparkError as error:
        return _failed(error, arguments, as_json=as_json)
    except click.ClickException as error:
        return _usage(error, arguments, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        interrupted = Interrupted("interrupted: nothing was changed", remedy="run the command again when you want it")
        return _failed(interrupted, arguments, as_json=as_json)
    except SystemExit:
        code = ExitCode.OK  # click's own answer to a reader of standard output that has gone: `dspark logs | head`
    except BrokenPipeError:
        give_up_output()  # likewise, met elsewhere
        code = ExitCode.OK
    except Exception as error:  # noqa: BLE001  the one place that turns a fault of ours into a report instead of a wall of text
        return _bug(error, arguments, as_json=as_json)
    return code if isinstance(code, int) else ExitCode.OK


def _failed(error: DsparkError, arguments: list[str], *, as_json: bool) -> int:
    """Told to people first: where standard output takes nothing, they know all the same."""
    _say(error)
    if as_json:
        print_envelope(_command(arguments), error.code, errors=[error])
    return error.code


def _say(error: DsparkError) -> None:
    with suppress(OSError):  # standard error may lie on a full disk too: the exit code tells it then
        click.echo(error_text(error), err=True)


def _usage(error: click.ClickException, arguments: list[str], *, as_json: bool) -> int:
    with suppress(OSError):
        error.show()
    if as_json:
        context = error.ctx if isinstance(error, click.UsageError) else None
        path = context.command_path if context else "dspark"
        known = ConfigError(error.format_message(), remedy=f"`{path} --help` lists what can be said")
        print_envelope(_command(arguments), ExitCode.USAGE, errors=[known])
    return ExitCode.USAGE


def _bug(error: Exception, arguments: list[str], *, as_json: bool) -> int:
    """A fault of ours: the traceback goes into a file that can be attached to a report, not onto the screen."""
    descriptor, name = tempfile.mkstemp(prefix="dspark-fault-", suffix=".txt", text=True)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"dspark {__version__}, Python {sys.version}\ncommand: {_command(arguments)}\n\n")
        traceback.print_exception(error, file=file)
    fault = _Fault(
        f"a fault in dspark itself: {type(error).__name__}: {error}",
        remedy=f"please report it with {Path(name)} attached; `dspark status` shows how the pair was left",
    )
    return _failed(fault, arguments, as_json=as_json)


class _Fault(DsparkError):
    code = ExitCode.BUG
    id = "fault"


def _command(arguments: list[str]) -> str:
    """The command's name among the words of its line, for the envelope and the report."""
    return next((word for word in arguments if word in cli.commands), "")


def _named_inventory(arguments: list[str]) -> str | None:
    """As `_wants_json`: asked of the words themselves, since hints also stand in what is said of a wrong line."""
    for number, word in enumerate(arguments):
        option, _, value = word.partition("=")
        if option in {"-i", "--inventory"}:
            return value or next(iter(arguments[number + 1 :]), None)
        if word.startswith("-i") and not word.startswith("--"):
            return word[2:]
    return None


def _wants_json(arguments: list[str]) -> bool:
    """Asked of the words themselves, since a command line that can't be parsed must be answered in JSON too."""
    for number, word in enumerate(arguments):
        if word.startswith("--output"):
            following = arguments[number + 1] if number + 1 < len(arguments) else ""
            return (word.partition("=")[2] or following) == "json"
    return os.environ.get("DSPARK_OUTPUT") == "json"


def register(*commands: Any) -> None:
    """Add commands to the group, in this order."""
    for command in commands:
        cli.add_command(command)
