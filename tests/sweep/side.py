"""One embedded pair and the tool beside it, for one process that plays points one after another."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..bed.run import Ran
from ..forked import ERR, OUT, fork_tool
from ..rehearsal.pair import DROPPED, place

LIMIT_S = 60.0  # of one run of the tool: everything that it waits for here ends well before
CANARY = "sk-canary-5d1e8b"  # the key that the pair's API asks for: it is looked for in all that is written
QUIET_S = 10.0  # until what the tool had on the nodes is gone
ROOT = Path(__file__).parents[2]


class Hangs(Exception):
    """The tool did not end in time."""


@dataclass
class Running:
    """The tool, forked off."""

    words: tuple[str, ...]
    pid: int
    folder: Path
    began: float

    def send(self, number: signal.Signals) -> None:
        """A signal; it may have ended by itself."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


class Side:
    """See the module."""

    def __init__(self) -> None:
        self.state = place()
        self.folder = self.state / "pair"
        self.folder.mkdir()
        argv = (sys.executable, "-m", "tests.sweep.nodes", str(self.folder))
        self._log = (self.state / "nodes.log").open("wb")
        self._nodes = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, cwd=ROOT, start_new_session=True
        )
        self._unread: list[dict[str, Any]] = []
        self._buffer = b""
        self._number = 0
        assert self._next(30) == {"ready": True}

    def close(self) -> None:
        """End both nodes."""
        assert self._nodes.stdin
        self._nodes.stdin.close()
        self._nodes.wait(20)
        self._log.close()
        shutil.rmtree(self.state)

    # --- the nodes ----------------------------------------------------------------------------------------------

    def ask(self, do: str, **more: Any) -> Any:
        """Have the nodes do something."""
        assert self._nodes.stdin
        self._nodes.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
        self._nodes.stdin.flush()
        while True:
            document = self._next(30)
            if document is None:
                raise AssertionError(f"the nodes give no answer to {do}")
            if "answer" in document:
                return document["answer"]
            self._unread.append(document)

    def told(self) -> dict[str, Any]:
        """What is on both nodes."""
        found: dict[str, Any] = self.ask("told")
        return found

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What is on both nodes, once `holds` says so of it, or after QUIET_S."""
        deadline = time.monotonic() + QUIET_S
        while not holds(told := self.told()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return told

    def met(self, running: Running, limit_s: float = LIMIT_S) -> bool:
        """Wait until the step to be held was reached. False where the tool ended before."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if self._unread:
                self._unread.clear()
                return True
            if self._next(0.01) is not None:
                return True
            if self._ended(running):
                return False
        raise Hangs(f"`dspark {' '.join(running.words)}`: {self._said(running)}")

    def _next(self, within_s: float) -> dict[str, Any] | None:
        assert self._nodes.stdout
        deadline = time.monotonic() + within_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._nodes.stdout], [], [], left)[0]:
                return None
            data = os.read(self._nodes.stdout.fileno(), 65536)
            assert data, (self.state / "nodes.log").read_text()
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        document: dict[str, Any] = json.loads(line)
        return document

    def shown(self) -> list[str]:
        """The files that hold the key: of controller, nodes and engines, and what the tool printed."""
        argv = ["grep", "-rlsF", "--exclude=secrets.env", CANARY, str(self.state)]
        found = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
        return [str(Path(each).relative_to(self.state)) for each in found.splitlines()]

    # --- the tool -----------------------------------------------------------------------------------------------

    def dspark(self, *words: str) -> Ran:
        """Run it to its end."""
        return self.end(self.start(*words))

    def start(self, *words: str, controller: str = "one") -> Running:
        """Run it in a process of its own, as on a controller of that name."""
        self._number += 1
        folder = self.state / f"run-{self._number % 8}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        home = self.state / controller
        home.mkdir(exist_ok=True)
        words = (*words, "--inventory", str(self.folder / "inventory.yaml"))
        pid = fork_tool(words, folder, _environment(home))
        return Running(words, pid, folder, time.monotonic())

    def end(self, running: Running) -> Ran:
        """Its end. Raises Hangs."""
        deadline = time.monotonic() + LIMIT_S
        while (code := self._code(running)) is None:
            if time.monotonic() > deadline:
                said = self._said(running)
                running.send(signal.SIGKILL)
                os.waitpid(running.pid, 0)
                raise Hangs(f"`dspark {' '.join(running.words)}`: {said}")
            time.sleep(0.005)
        out, err = ((running.folder / name).read_text() for name in (OUT, ERR))
        return Ran(running.words, code, out, err, time.monotonic() - running.began)

    def _code(self, running: Running) -> int | None:
        pid, status = os.waitpid(running.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    @staticmethod
    def _ended(running: Running) -> bool:
        found = os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is not None

    @staticmethod
    def _said(running: Running) -> str:
        return (running.folder / ERR).read_text()


def _environment(home: Path) -> Mapping[str, str]:
    return {
        **KEPT,
        "DSPARK_API_KEY": CANARY,
        "HOME": str(home),
        "XDG_STATE_HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(home),
    }


KEPT = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
