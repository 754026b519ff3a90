"""Hosts that remember what their programs answered, and hosts that have nothing but such answers."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pydantic import SecretStr

from dspark_deploy.errors import StepFailed
from dspark_deploy.remote.host import Engine, Host, Result, Session, Stream

PROBE = "probe"  # its clock is compared with ours, so a replay has to move it


class RecordingHost:
    """Another host; `asked` and `answers` hold what was called, by program. See Host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.asked: dict[str, float] = {}  # seconds since the epoch, by our clock
        self.answers: dict[str, Any] = {}
        self.failed: dict[str, dict[str, str]] = {}

    @property
    def name(self) -> str:
        """See Host."""
        return self._host.name

    @property
    def where(self) -> str:
        """See Host."""
        return self._host.where

    @property
    def address(self) -> str:
        """See Host."""
        return self._host.address

    @property
    def api_key(self) -> SecretStr | None:
        """See Host."""
        return self._host.api_key

    def call(
        self, program: str, request: Mapping[str, Any], *, timeout_s: float, payload: bytes = b""
    ) -> dict[str, Any]:
        """See Host."""
        self.asked[program] = time.time()
        try:
            answer = self._host.call(program, request, timeout_s=timeout_s, payload=payload)
        except StepFailed as error:
            self.failed[program] = {"message": error.message, "why": error.why, "remedy": error.remedy}
            raise
        self.answers[program] = answer
        return answer

    def run(self, argv: Sequence[str], *, timeout_s: float, cwd: str | None = None) -> Result:
        """See Host."""
        return self._host.run(argv, timeout_s=timeout_s, cwd=cwd)

    def start(self, program: str, request: Mapping[str, Any], *, timeout_s: float) -> Session:
        """See Host."""
        return self._host.start(program, request, timeout_s=timeout_s)

    def engine(self) -> Engine:
        """See Host."""
        return self._host.engine()

    def dial(self, address: str, port: int, *, timeout_s: float) -> Stream:
        """See Host."""
        return self._host.dial(address, port, timeout_s=timeout_s)

    def close(self) -> None:
        """See Host."""
        self._host.close()


class RecordedHost:
    """A node of which only the answers are left. What was not recorded can't be asked: StepFailed. See Host."""

    def __init__(self, name: str, recording: Mapping[str, Any]) -> None:
        self._name = name
        self._recording = recording

    @property
    def name(self) -> str:
        """See Host."""
        return self._name

    @property
    def where(self) -> str:
        """See Host."""
        return f"{self._name} (recorded)"

    @property
    def address(self) -> str:
        """See Host."""
        return self._name

    @property
    def api_key(self) -> None:
        """See Host. A recording holds none."""

    def call(
        self, program: str, request: Mapping[str, Any], *, timeout_s: float, payload: bytes = b""
    ) -> dict[str, Any]:
        """See Host. The recorded clock goes on as if the node had just been asked."""
        del request, timeout_s, payload
        if program in self._recording["failed"]:
            raise StepFailed(**self._recording["failed"][program], node=self._name)
        if program not in self._recording["answers"]:
            self._not_there(program)
        answer: dict[str, Any] = copy.deepcopy(self._recording["answers"][program])
        if program == PROBE:
            answer["time_s"] += time.time() - self._recording["asked"][PROBE]
        return answer

    def run(self, argv: Sequence[str], *, timeout_s: float, cwd: str | None = None) -> Result:
        """See Host."""
        del timeout_s, cwd
        self._not_there(argv[0])

    def start(self, program: str, request: Mapping[str, Any], *, timeout_s: float) -> Session:
        """See Host."""
        del request, timeout_s
        self._not_there(program)

    def engine(self) -> Engine:
        """See Host."""
        self._not_there("Docker")

    def dial(self, address: str, port: int, *, timeout_s: float) -> Stream:
        """See Host."""
        del timeout_s
        self._not_there(f"{address}:{port}")

    def close(self) -> None:
        """See Host."""

    def _not_there(self, what: str) -> NoReturn:
        raise StepFailed(
            f"{self.where}: the recording holds no answer of {what}",
            remedy="record anew: dspark doctor --record DIR",
            node=self._name,
        )
