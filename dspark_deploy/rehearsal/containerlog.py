"""A container's log: one JSON line a printed line, as the engine's json-file driver keeps it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

QUIET_S = 0.5  # how often a follower of a silent container may look whether anybody still listens


@dataclass(frozen=True, slots=True)
class Entry:
    """One line with its end. `at` is nanoseconds since the epoch."""

    at: int
    stream: str  # stdout or stderr
    text: str


class ContainerLog:
    """Written by a container's pumps, read by any number of followers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w", encoding="utf-8")
        self._changed = threading.Condition()
        self._open = False

    def begin(self) -> None:
        """The container runs: followers wait for more from now on."""
        with self._changed:
            self._open = True

    def append(self, stream: str, text: str) -> None:
        """Keep one line."""
        line = json.dumps({"log": text, "stream": stream, "time": time.time_ns()})
        with self._changed:
            self._file.write(f"{line}\n")
            self._file.flush()
            self._changed.notify_all()

    def end(self) -> None:
        """The container ended: followers have all there is."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def entries(self) -> list[Entry]:
        """All that was printed so far."""
        with self._path.open(encoding="utf-8") as file:
            return [_entry(line) for line in file if line.endswith("\n")]

    def follow(self, after: int) -> Iterator[Entry | None]:
        """What comes after the first `after` entries until the container ends; None now and then while it is silent."""
        with self._path.open(encoding="utf-8") as file:
            for _ in range(after):
                file.readline()
            while True:
                with self._changed:  # lines are written under it, so that none is read in part
                    line = file.readline()
                    if not line:
                        if not self._open:
                            return
                        self._changed.wait(QUIET_S)
                yield _entry(line) if line else None

    def close(self) -> None:
        """The container is removed."""
        self.end()
        self._file.close()


def _entry(line: str) -> Entry:
    found = json.loads(line)
    return Entry(found["time"], found["stream"], found["log"])
