"""What a changing run leaves on the controller: a folder with its plan, facts, events, both logs and its outcome."""

from __future__ import annotations

import dataclasses
import getpass
import json
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dspark_deploy.boot.quote import masked

KEPT_EVENTS = 2000


class Record:
    """One run's folder. Made when something is written into it, readable by its owner alone.

    A record that can't be written is told to `warn` and stops nothing: the pair matters more.
    """

    def __init__(self, state_home: Path, pair: str, command: str, warn: Callable[[str], None]) -> None:
        self._began = datetime.now(UTC)
        self._warn = warn
        self._warned = False
        self._events = 0
        self.pair = pair
        self.command = command
        self.who = this_user()
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

    def document(self, name: str, document: Any) -> None:
        """Keep plain data or dataclasses in a JSON file of its own."""
        self._write(f"{name}.json", json.dumps(document, indent=2, default=_plain) + "\n")

    def event(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Keep that something happened: one JSON object a line in events.jsonl. A run that says too much is cut off."""
        self._events += 1
        if self._events > KEPT_EVENTS:
            return
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._write("events.jsonl", json.dumps({"at": at, "event": kind, **facts}, default=_plain) + "\n", append=True)

    def log(self, node: str, lines: Iterable[str]) -> None:
        """Keep what a rank printed, the secrets that an engine prints made unreadable."""
        self._write(f"{node}.log", "".join(f"{masked(line.rstrip())}\n" for line in lines))

    def _write(self, name: str, text: str, *, append: bool = False) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            how = os.O_APPEND if append else os.O_TRUNC
            descriptor = os.open(self.path / name, os.O_WRONLY | os.O_CREAT | how, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            if not self._warned:
                self._warned = True
                self._warn(f"the run's record can't be written to {self.path}: {error.strerror}")


def _plain(value: Any) -> Any:
    """What json has no form for."""
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else str(value)


def this_user() -> str:
    """Who runs this, as other runs are told: user@controller."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def state_home(environment: Mapping[str, str], home: Path) -> Path:
    """Where records lie on this controller. XDG's rule: a relative path in the variable is none."""
    given = Path(environment.get("XDG_STATE_HOME", ""))
    return given if given.is_absolute() else home / ".local" / "state"
