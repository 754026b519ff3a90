"""Running programs for the tests: what came of it, and for how long it ran."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that ended."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float

    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.stdout)

    def check(self) -> Ran:
        """Itself, when the program ended with 0; AssertionError with both outputs otherwise."""
        assert self.returncode == 0, self
        return self

    def __str__(self) -> str:
        return f"{' '.join(self.argv)}\nended with {self.returncode}\n{self.stdout}{self.stderr}"


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
    timeout: float = 60,
) -> Ran:
    """Run a program to its end. Past `timeout` seconds its whole process group is killed: TimeoutExpired."""
    words = tuple(map(str, argv))
    began = time.monotonic()
    process = subprocess.Popen(
        words,
        env=env,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired as expired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        raise subprocess.TimeoutExpired(words, timeout, stdout, stderr) from expired
    return Ran(words, process.returncode, stdout, stderr, time.monotonic() - began)


class Talking(Protocol):
    """A program that runs."""

    @property
    def stderr(self) -> IO[str] | None:
        """What it says."""
        ...


def words_of(process: Talking, awaited: str) -> str:
    """What a process has written to standard error once it has said `awaited`, or ended."""
    assert process.stderr is not None
    said = ""
    while awaited not in said and (character := process.stderr.read(1)):
        said += character
    return said
