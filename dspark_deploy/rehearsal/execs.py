"""Commands that are run in a container beside its main process: docker's `exec`."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dspark_deploy.rehearsal.containers import Container

FRAME = struct.Struct(">BxxxL")  # which stream, how many bytes follow
STDOUT, STDERR = 1, 2
NOT_FOUND = 127


@dataclass(slots=True)
class Exec:
    """One command, run or not yet."""

    id: str
    container: Container
    argv: tuple[str, ...]
    exit_code: int | None = None

    def run(self) -> Iterator[bytes]:
        """Its output as the engine frames it, once it has ended."""
        try:
            self.exit_code, out, err = self.container.execute(self.argv)
        except OSError as error:
            self.exit_code = NOT_FOUND
            yield _frame(STDOUT, f'OCI runtime exec failed: exec: "{self.argv[0]}": {error.strerror}\n'.encode())
            return
        for stream, data in ((STDOUT, out), (STDERR, err)):
            if data:
                yield _frame(stream, data)

    def document(self) -> dict[str, Any]:
        """What `GET /exec/ID/json` answers."""
        return {"ID": self.id, "ContainerID": self.container.id, "Running": False, "ExitCode": self.exit_code}


def new_exec(container: Container, argv: tuple[str, ...]) -> Exec:
    """A command that is not run yet."""
    return Exec(secrets.token_hex(32), container, argv)


def _frame(stream: int, data: bytes) -> bytes:
    return FRAME.pack(stream, len(data)) + data
