"""Standard output that may fail: a full disk behind it is an error of its own, and no fault of what was printing."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import UnsupportedOperation
from typing import Any, TextIO, cast

from dspark_deploy.errors import DsparkError, ExitCode


class OutputFailed(DsparkError):
    """What a command had to say could not be written. What it had to do is done."""

    code = ExitCode.USAGE
    id = "output"


@contextmanager
def checked_output() -> Iterator[None]:
    """Within this, what standard output does not take raises OutputFailed; a reader that has gone stays an OSError."""
    with redirect_stdout(cast("TextIO", _Checked(sys.stdout))):
        yield


def give_up_output() -> None:
    """What is still waiting goes nowhere: Python would complain once more while it flushes at exit."""
    with suppress(UnsupportedOperation):  # no file of the system's
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Checked:
    """A text stream whose failures are told apart; in all else the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """See TextIO."""
        with _failing():
            return self._stream.write(text)

    def flush(self) -> None:
        """See TextIO."""
        with _failing():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        """See TextIO."""
        return getattr(self._stream, name)


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise OutputFailed(
            f"standard output can't be written: {error.strerror}",
            why="what the command had to do is done; only what it had to say is lost",
            remedy="free space there or send the output elsewhere, then ask again",
        ) from error
