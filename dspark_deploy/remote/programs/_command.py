"""A command that works in the background while everything else is read."""

from __future__ import annotations

import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

READ_SIZE = 65536
NOT_STARTED = 127


class Command:
    """Started at once; `read` waits for its end. Both streams are one text. None is one that is not there."""

    def __init__(self, argv: Sequence[str] | None) -> None:
        self.argv = argv
        if argv is None:
            return
        self._reader, writer = os.pipe()
        wiring = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_DUP2, writer, 2)]
        self._child = os.posix_spawn(argv[0], list(argv), os.environ, file_actions=wiring)
        os.close(writer)

    def read(self, limit_s: float) -> tuple[int, str]:
        """Exit code and what it said. Raises TimeoutError; the command is ended then."""
        if self.argv is None:
            return NOT_STARTED, ""
        deadline, data = time.monotonic() + limit_s, b""
        while True:
            ready, _, _ = select.select([self._reader], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                os.kill(self._child, signal.SIGKILL)
                raise TimeoutError(f"{self.argv[0]} did not end within {limit_s:g} s")
            part = os.read(self._reader, READ_SIZE)
            if not part:
                break
            data += part
        os.close(self._reader)
        _, status = os.waitpid(self._child, 0)
        return os.waitstatus_to_exitcode(status), data.decode(errors="replace").strip()
