"""Answers of a node's engine that go on for long: a container's log, and what happens to containers."""

from __future__ import annotations

import json

from pydantic import SecretStr
from urllib3 import HTTPResponse
from urllib3.exceptions import HTTPError

from dspark_deploy.facts.redact import masked
from dspark_deploy.remote.dialed import DialedConnection
from dspark_deploy.remote.host import EngineEvent, LogLine
from dspark_deploy.remote.loglines import Demultiplexer


class _Chunks:
    """What comes over one connection, which is this answer's own: it can be ended from another thread."""

    def __init__(self, connection: DialedConnection, response: HTTPResponse) -> None:
        self._connection = connection
        self._chunks = response.stream()

    def read(self) -> bytes:
        """What has come; empty at the end, be it the container's, the connection's or our own."""
        try:
            return next(self._chunks, b"")
        except (OSError, HTTPError):
            return b""

    def close(self) -> None:
        """End it."""
        self._connection.hang_up()


class EngineLogs(_Chunks):
    """See host.Logs. `secret` is masked in what is handed on: a server may log what it is asked with."""

    def __init__(self, connection: DialedConnection, response: HTTPResponse, secret: SecretStr | None = None) -> None:
        super().__init__(connection, response)
        self._lines = Demultiplexer()
        self._secret = secret

    def __iter__(self) -> EngineLogs:
        return self

    def __next__(self) -> LogLine:
        while (line := self._lines.next()) is None:
            data = self.read()
            if data:
                self._lines.feed(data)
            elif not self._lines.finish():
                self.close()
                raise StopIteration
        if self._secret is None:
            return line
        return LogLine(line.at, masked(line.text, self._secret.get_secret_value()))


class EngineEvents(_Chunks):
    """See host.Events. The engine sends a JSON document a line."""

    def __init__(self, connection: DialedConnection, response: HTTPResponse) -> None:
        super().__init__(connection, response)
        self._buffer = b""

    def __iter__(self) -> EngineEvents:
        return self

    def __next__(self) -> EngineEvent:
        while b"\n" not in self._buffer:
            data = self.read()
            if not data:
                self.close()
                raise StopIteration
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return parse_event(line)


def parse_event(line: bytes) -> EngineEvent:
    """Read one document of `GET /events` about a container."""
    told = json.loads(line)
    actor = told["Actor"]
    marks = actor.get("Attributes") or {}
    code = str(marks.get("exitCode", ""))
    return EngineEvent(
        at=told["timeNano"] / 1e9,
        action=told["Action"],
        container_id=actor["ID"],
        name=str(marks.get("name", "")),
        exit_code=int(code) if code.isdigit() else None,
    )
