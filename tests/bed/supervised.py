"""A `supervise` that runs, for the tests of the bed and of the rehearsal: what it says, line by line."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping

from tests.warm import ToolRun

QUICK = ("--turn", "200ms", "--backoff", "200ms", "--canary-every", "1s", "--wedge-after", "3s")
LIMIT_S = 60


class Supervise:
    """A `dspark supervise` that runs, and the lines that it has said."""

    def __init__(self, process: subprocess.Popen[str] | ToolRun) -> None:
        """`process` is a `supervise --output json` with pipes."""
        self._process = process
        self._lines: queue.SimpleQueue[dict[str, str]] = queue.SimpleQueue()
        self.said: list[dict[str, str]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"at"'):
                self._lines.put(json.loads(line))

    def until(self, kind: str, words: str = "") -> str:
        """The text of the next line of that kind with these words."""
        return self.until_any({kind: words})

    def until_any(self, wanted: Mapping[str, str]) -> str:
        """The text of the next line that is one of these: kind -> words in it."""
        while True:
            try:
                said = self._lines.get(timeout=LIMIT_S)
            except queue.Empty:
                raise AssertionError(f"waited for {wanted}; it said {self.said}") from None
            self.said.append(said)
            if said["kind"] in wanted and wanted[said["kind"]] in said["text"]:
                return said["text"]

    def texts(self, kind: str) -> list[str]:
        """Of what was read so far."""
        return [said["text"] for said in self.said if said["kind"] == kind]

    def wait(self) -> tuple[int, str]:
        """Its end by itself: the exit code and what stands on standard error."""
        code = self._process.wait(LIMIT_S)
        assert self._process.stderr is not None
        return code, self._process.stderr.read()

    def end(self) -> int:
        """End it as systemd would."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
