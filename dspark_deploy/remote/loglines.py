"""A container's log as the engine sends it, as lines with their time stamps. Pure."""

from __future__ import annotations

import struct
from collections import deque

from dspark_deploy.remote.host import LogLine

HEADER = struct.Struct(">BxxxL")  # stream (1: out, 2: err), size; docker's API, ContainerAttach, `Stream format`


class Demultiplexer:
    """Turns frames into lines. A frame is one message: stamp, blank, text; a long line comes as several messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begun: dict[int, LogLine] = {}  # by stream: what has come of a line whose end has not
        self._lines: deque[LogLine] = deque()

    def feed(self, data: bytes) -> None:
        """Take more of what came."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            stream, size = HEADER.unpack_from(self._buffer)
            end = HEADER.size + size
            if len(self._buffer) < end:
                return
            self._take(stream, self._buffer[HEADER.size : end].decode(errors="replace"))
            del self._buffer[:end]

    def next(self) -> LogLine | None:
        """The next whole line, or None until more has come."""
        return self._lines.popleft() if self._lines else None

    def finish(self) -> bool:
        """No more will come: a line without its end is a line too. Whether there was one."""
        self._lines.extend(self._begun.values())
        self._begun.clear()
        return bool(self._lines)

    def _take(self, stream: int, message: str) -> None:
        for part in message.splitlines(keepends=True) if message.count("\n") > 1 else [message]:
            stamp, _, text = part.partition(" ")
            begun = self._begun.pop(stream, LogLine(stamp, ""))
            line = LogLine(begun.at, begun.text + text.rstrip("\r\n"))
            if part.endswith("\n"):
                self._lines.append(line)
            else:
                self._begun[stream] = line
