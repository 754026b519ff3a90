"""The served API as flows ask it: one answer a question, and no library's own types beyond this room."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import httpcore

from dspark_deploy.remote.forwarded import CONNECT_S, forwarded_pool
from dspark_deploy.remote.host import Host

HTTP_OK = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whatever its status."""

    status: int
    text: str

    def document(self) -> Any:
        """The body as JSON; None where it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


class NoAnswer(Exception):
    """Nothing came back: refused, cut off, or not within its time."""

    def __init__(self, why: str, *, timed_out: bool, tls: bool = False) -> None:
        super().__init__(why)
        self.timed_out = timed_out
        self.tls = tls  # the other side's certificate or TLS itself is the reason


class Api(Protocol):
    """The head's HTTP server."""

    def get(self, path: str, *, timeout_s: float) -> Answer:
        """Raises NoAnswer."""
        ...

    def post(self, path: str, document: Any, *, timeout_s: float) -> Answer:
        """Raises NoAnswer."""
        ...


class ServedApi:
    """The head's HTTP server, through a forwarded channel of the head's connection."""

    def __init__(self, host: Host, address: str, port: int) -> None:
        self._pool = forwarded_pool(host)
        self._origin = f"http://{f'[{address}]' if ':' in address else address}:{port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    def get(self, path: str, *, timeout_s: float) -> Answer:
        """See Api."""
        return self._ask("GET", path, None, timeout_s)

    def post(self, path: str, document: Any, *, timeout_s: float) -> Answer:
        """See Api."""
        return self._ask("POST", path, document, timeout_s)

    def _ask(self, method: str, path: str, document: Any, timeout_s: float) -> Answer:
        content = b"" if document is None else json.dumps(document).encode()
        limits = {"connect": CONNECT_S, "read": timeout_s, "write": timeout_s, "pool": timeout_s}
        headers: dict[bytes | str, bytes | str] = {
            "Host": self._origin.removeprefix("http://"),
            "Content-Type": "application/json",
        }
        headers["Content-Length"] = str(len(content))
        try:
            response = self._pool.request(
                method,
                f"{self._origin}{path}",
                headers=headers,
                content=content,
                extensions={"timeout": limits},
            )
        except httpcore.TimeoutException as error:
            raise NoAnswer(f"no answer within {timeout_s:g} s", timed_out=True) from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise NoAnswer(str(error) or type(error).__name__, timed_out=False) from error
        return Answer(response.status, response.content.decode(errors="replace"))
