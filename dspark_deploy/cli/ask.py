"""The one question a command may ask, and its answer where there is nobody to ask."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import click

from dspark_deploy.errors import Declined

if TYPE_CHECKING:
    from dspark_deploy.flow.wish import Confirm


def asker(*, yes: bool) -> Confirm:
    """With --yes nothing is asked. Off a terminal without it, Declined."""

    def confirm(text: str) -> None:
        if yes:
            return
        if sys.stdin is None or not sys.stdin.isatty():
            raise Declined(
                text.splitlines()[0].rstrip(":"),
                why="there is no terminal to ask on\n" + "\n".join(text.splitlines()[1:]),
                remedy="add --yes to agree to it",
            )
        click.echo(text, err=True)
        if not _agrees():
            raise Declined("declined: nothing was changed", remedy="run the command again when you want it")

    return confirm


def _agrees() -> bool:
    """Ctrl-C at the question is a no at once: nothing is under way that would have to be finished first."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm("Go on?", default=False, err=True)
    finally:
        signal.signal(signal.SIGINT, before)
