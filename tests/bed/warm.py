"""Many runs of the tool as the bed's client, forked off one process that has imported it: `python -m tests.bed.warm`.

A line of JSON comes in for each run: its words, its folder and its environment. Its process id goes out at once, and
its exit code is in its folder after its end. One runs at a time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.forked import ERR, OUT, fork_tool

from .bed import CHECKOUT, Bed
from .host import wait_until
from .run import Ran

LIMIT_S = 60.0  # of one run
CODE = "code"


@dataclass
class Running:
    """One run. It ends by itself, or is sent a signal."""

    words: tuple[str, ...]
    pid: int
    folder: Path
    began: float

    def send(self, number: signal.Signals) -> None:
        """A signal; it may have ended by itself."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def ended(self) -> bool:
        """Whether it has ended."""
        return (self.folder / CODE).exists()

    def end(self) -> Ran:
        """Its end. AssertionError past LIMIT_S."""
        wait_until(self.ended, LIMIT_S, f"the end of dspark {' '.join(self.words)}")
        code, out, err = ((self.folder / name).read_text() for name in (CODE, OUT, ERR))
        return Ran(self.words, int(code), out, err, time.monotonic() - self.began)


class WarmTool:
    """The process that forks. A reset of the bed ends it."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._number = 0
        self._process = bed.popen([sys.executable, "-m", "tests.bed.warm"], env={"PYTHONPATH": str(CHECKOUT)})

    def close(self) -> None:
        """End it. A run that has not ended goes on."""
        self._process.kill()
        self._process.communicate()

    def run(self, *words: str) -> Ran:
        """Run one command line to its end."""
        return self.start(*words).end()

    def start(self, *words: str) -> Running:
        """Begin a run. The one before it has ended."""
        self._number += 1
        folder = self._bed.client / f"run-{self._number}"
        folder.mkdir()
        self._bed.inventory()
        request = {"words": words, "folder": str(folder), "environment": self._bed.environment()}
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout
        return Running(words, int(self._process.stdout.readline()), folder, time.monotonic())


def main() -> None:
    """Fork off what is asked for until the end of input."""
    for line in sys.stdin:
        asked = json.loads(line)
        folder = Path(asked["folder"])
        pid = fork_tool(asked["words"], folder, asked["environment"])
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        (folder / "part").write_text(str(code))
        (folder / "part").rename(folder / CODE)


if __name__ == "__main__":
    main()
