"""What a changing run leaves on the controller: a folder with its outcome and, where it failed, both logs."""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Record:
    """One run's folder. Made when something is written into it, readable by its owner alone.

    A record that can't be written is told to `warn` and stops nothing: the pair matters more.
    """

    def __init__(self, state_home: Path, pair: str, command: str, warn: Callable[[str], None]) -> None:
        self._began = datetime.now(UTC)
        self._warn = warn
        self.pair = pair
        self.command = command
        self.who = f"{getpass.getuser()}@{socket.gethostname()}"
        self.path = state_home / "dspark" / pair / "runs" / f"{self._began:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"

    @property
    def began(self) -> str:
        """When the run began, RFC 3339."""
        return self._began.isoformat(timespec="seconds")

    @property
    def owner(self) -> dict[str, Any]:
        """What another run is shown while this one holds the lock."""
        return {"who": self.who, "pid": os.getpid(), "since": self.began, "command": f"dspark {self.command}"}

    def outcome(self, facts: Mapping[str, Any]) -> None:
        """Keep how it ended."""
        document = {"command": self.command, "began": self.began, **facts}
        self._write("run.json", json.dumps(document, indent=2) + "\n")

    def log(self, node: str, lines: Iterable[str]) -> None:
        """Keep what a rank printed."""
        self._write(f"{node}.log", "".join(f"{line.rstrip()}\n" for line in lines))

    def _write(self, name: str, text: str) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self._warn(f"the run's record can't be written to {self.path}: {error.strerror}")


def state_home(environment: Mapping[str, str], home: Path) -> Path:
    """Where records lie on this controller."""
    return Path(environment.get("XDG_STATE_HOME") or home / ".local" / "state")
