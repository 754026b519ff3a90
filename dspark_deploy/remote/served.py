"""The served API as flows ask it: one answer a question, and no library's own types beyond this room."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import httpcore
from pydantic import SecretStr

from dspark_deploy.errors import KeyRefused
from dspark_deploy.remote.forwarded import CONNECT_S, forwarded_pool
from dspark_deploy.remote.host import Host

HTTP_OK, HTTP_UNAUTHORIZED = 200, 401


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
        """Raises NoAnswer, and KeyRefused where it is asked for a key and ours does not do."""
        ...

    def post(self, path: str, document: Any, *, timeout_s: float) -> Answer:
        """Raises NoAnswer and KeyRefused."""
        ...


class ServedApi:
    """The head's HTTP server, through a forwarded channel of the head's connection, with the host's API key.

    `key`: another one, of a server that was started with it.
    """

    def __init__(self, host: Host, address: str, port: int, *, key: SecretStr | None = None) -> None:
        self._pool = forwarded_pool(host)
        self._host = host
        self._key = key or host.api_key
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
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
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
        if response.status == HTTP_UNAUTHORIZED:
            raise self._refused()
        return Answer(response.status, response.content.decode(errors="replace"))

    def _refused(self) -> KeyRefused:
        asks = f"{self._host.where}: the API at {self._origin} answers 401"
        if self._key is None:
            return KeyRefused(
                f"{asks}: it asks for a key, and none is given",
                remedy="name the key's file as api.key_file in the inventory, or set DSPARK_API_KEY",
                node=self._host.name,
            )
        return KeyRefused(
            f"{asks}: it does not take the key that it was given",
            remedy="give the key that the pair was started with, or have `dspark up` start it with this one",
            node=self._host.name,
        )
