"""What a user types to reach this tool, where that is not `dspark` alone: the one place where hints learn of it.

A hint is written as `dspark up` wherever it arises. In a rehearsal the command that does it is `dspark rehearse up`,
and with another inventory than the usual one `dspark -i FILE up`, which nothing below cli/ knows: so hints are put
right on their way out, in text and in JSON alike.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast


@contextmanager
def spoken_as(program: str, commands: Collection[str]) -> Iterator[None]:
    """Within this, `dspark COMMAND` in backquotes is printed as `PROGRAM COMMAND`, for those commands."""
    hint = re.compile(rf"(?<=`)dspark(?= (?:{'|'.join(map(re.escape, commands))})\b)")
    out, err = (cast("TextIO", _Spoken(stream, hint, program)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


class _Spoken:
    """A text stream with its hints put right; in all else the stream behind it. Whoever prints prints whole lines."""

    def __init__(self, stream: TextIO, hint: re.Pattern[str], program: str) -> None:
        self._stream = stream
        self._hint = hint
        self._program = program

    def write(self, text: str) -> int:
        """See TextIO."""
        self._stream.write(self._hint.sub(lambda _: self._program, text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """See TextIO."""
        return getattr(self._stream, name)
