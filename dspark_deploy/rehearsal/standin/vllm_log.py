"""Printing as the engine does: prefix, level, time, source file, message; one flushed line at a time."""

from __future__ import annotations

import os
import sys
import threading
import time

API_SERVER = "APIServer"
ENGINE_CORE = "EngineCore"
WORKER = "Worker"
_lock = threading.Lock()


class Death(Exception):
    """The engine ends here: an exit code, and the lines it says on the way out."""

    def __init__(self, *lines: str, code: int = 1) -> None:
        super().__init__(*lines)
        self.lines = lines
        self.code = code


class Log:
    """One rank's log. Which process says a line decides its prefix; all are threads of one process here."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        own = os.getpid()
        self._pids = {API_SERVER: own, ENGINE_CORE: own + 118, WORKER: own + (190 if rank == 0 else 96)}
        self._worker = WORKER

    def knows_its_rank(self) -> None:
        """From here on the worker process is named by its tensor parallel rank."""
        self._worker = f"{WORKER}_TP{self.rank}"

    def prefix(self, process: str) -> str:
        """What stands in front of a line. The headless parent on rank 1 has none."""
        if self.rank != 0 and process != WORKER:
            return ""
        name = self._worker if process == WORKER else process
        return f"({name} pid={self._pids[process]}) "

    def info(self, process: str, source: str, message: str) -> None:
        """One INFO line. `source` is `file.py:line`."""
        self._say(process, "INFO", source, message)

    def warning(self, process: str, source: str, message: str) -> None:
        """One WARNING line."""
        self._say(process, "WARNING", source, message)

    def failure(self, process: str, source: str, message: str) -> None:
        """One ERROR line, or several under one prefix."""
        for line in message.splitlines():
            self._say(process, "ERROR", source, line)

    def uvicorn(self, message: str) -> None:
        """A line of the HTTP server, which has a format of its own."""
        raw(f"{self.prefix(API_SERVER)}INFO:     {message}")

    def _say(self, process: str, level: str, source: str, message: str) -> None:
        raw(f"{self.prefix(process)}{level} {time.strftime('%m-%d %H:%M:%S')} [{source}] {message}")


def raw(line: str) -> None:
    """A line as it is."""
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
