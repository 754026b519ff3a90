"""Runs of the tool in processes forked off one that has loaded it: its start is most of what a short run costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .bed.run import Ran
from .forker import Forked, Forker

LIMIT_S = 60.0  # of one run
CHECKOUT = Path(__file__).parents[1]


class WarmTool:
    """The process that forks, from its creation on. It may be used by any thread."""

    def __init__(self, environment: Mapping[str, str], before: Sequence[str] = ()) -> None:
        """`before`: what stands before the command line of that process."""
        self._forker = Forker(*before, sys.executable, "-m", "tests.forked", environment=environment, cwd=CHECKOUT)

    @property
    def pid(self) -> int:
        """Of that process."""
        return self._forker.pid

    def close(self) -> None:
        """End it. A run that has not ended goes on."""
        self._forker.close()

    def start(self, *words: str, cwd: Path, environment: Mapping[str, str]) -> ToolRun:
        """Begin a run."""
        (out, stdout), (err, stderr) = os.pipe(), os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        told = self._forker.fork(cwd, environment, (nothing, stdout, stderr), words=words)
        return ToolRun(words, told, out, err)


class ToolRun(Forked):
    """One run. It ends by itself, or is sent a signal. See Popen for what it can do."""

    def __init__(self, words: Sequence[str], told: int, stdout: int, stderr: int) -> None:
        super().__init__(told)
        self.words = tuple(words)
        self.stdout = os.fdopen(stdout)
        self.stderr = os.fdopen(stderr)
        self._began = time.monotonic()

    def communicate(self, timeout: float = LIMIT_S) -> tuple[str, str]:
        """What it still had to say on both streams, and its end. Past `timeout` it is killed: TimeoutExpired."""
        with ThreadPoolExecutor(2) as pool:
            said = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            stdout, stderr = (each.result() for each in said)
        return stdout, stderr

    def end(self) -> Ran:
        """Its end."""
        stdout, stderr = self.communicate()
        assert self.returncode is not None
        return Ran(self.words, self.returncode, stdout, stderr, time.monotonic() - self._began)
