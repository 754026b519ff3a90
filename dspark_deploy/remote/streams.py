"""Many requests at once, each piece of an answer as it comes: httpx, asynchronous, its connections kept and reused."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from types import TracebackType
from typing import Any, Self

import httpx
from httpx_sse import EventSource, SSEError

from dspark_deploy.remote.forwarded import CONNECT_S
from dspark_deploy.remote.forwarded_async import forwarded_async_pool
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.served import HTTP_OK, Answer, NoAnswer

KEEP_S = 4.0  # uvicorn closes an idle connection after 5 s: a request must not meet one at that moment
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=KEEP_S)


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event. `at_s` is this process's monotonic clock when it had been read."""

    at_s: float
    data: str


class BadStatus(Exception):
    """A stream was asked for and another status than 200 came back."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}: {answer.text[:400]}")
        self.answer = answer


class Streams:
    """One HTTP client. Nothing is asked twice: whatever fails is raised, for the caller to count."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.connections = 0  # opened so far

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def ask(self, method: str, path: str, document: Any = None, *, timeout_s: float) -> Answer:
        """One whole answer of any status. Raises NoAnswer, and NodeUnreachable where the node itself is lost."""
        async with self._stream(method, path, document, timeout_s) as response:
            with _translated(timeout_s):
                content = await response.aread()
            return Answer(response.status_code, content.decode(errors="replace"))

    async def events(
        self, path: str, document: Any, *, timeout_s: float, sent: Callable[[float], None]
    ) -> AsyncGenerator[Event]:
        """What a POST streams, event by event. `timeout_s` is between two of them. `sent` is told when it is sent: the
        connection stands by then, and other requests of this client may have gone out before.

        Raises BadStatus, NoAnswer, and NodeUnreachable where the node itself is lost.
        """
        async with self._stream("POST", path, document, timeout_s, sent) as response:
            if response.status_code != HTTP_OK:
                with _translated(timeout_s):
                    content = await response.aread()
                raise BadStatus(Answer(response.status_code, content.decode(errors="replace")))
            with _translated(timeout_s):
                async for event in EventSource(response).aiter_sse():
                    yield Event(time.monotonic(), event.data)

    @asynccontextmanager
    async def _stream(
        self,
        method: str,
        path: str,
        document: Any,
        timeout_s: float,
        sent: Callable[[float], None] = lambda _: None,
    ) -> AsyncIterator[httpx.Response]:
        content = None if document is None else json.dumps(document).encode()
        request = self._client.build_request(
            method,
            path,
            content=content,
            headers={"Content-Type": "application/json"},
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_S),
            extensions={"trace": partial(self._trace, sent)},
        )
        with _translated(timeout_s):
            response = await self._client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    async def _trace(self, sent: Callable[[float], None], name: str, info: Mapping[str, Any]) -> None:
        del info
        if name == "connection.connect_tcp.complete":
            self.connections += 1
        elif name == "http11.send_request_headers.started":
            sent(time.monotonic())


def served_streams(host: Host, address: str, port: int) -> Streams:
    """What listens on `address` and `port` as the node sees them, through forwarded channels of its connection.

    The host's API key goes along.
    """
    key = None if host.api_key is None else host.api_key.get_secret_value()
    literal = f"[{address}]" if ":" in address else address
    transport = httpx.AsyncHTTPTransport(verify=False, trust_env=False)  # plain HTTP: a certificate is never asked for
    transport._pool = forwarded_async_pool(host, KEEP_S)  # noqa: SLF001  httpx offers no other way to dial
    return Streams(httpx.AsyncClient(base_url=f"http://{literal}:{port}", transport=transport, headers=_bearer(key)))


def endpoint_streams(url: str, *, key: str | None = None) -> Streams:
    """Any HTTP server, dialled from here. `url` is what comes before `/v1`. Raises ValueError on what is no URL."""
    try:
        return Streams(httpx.AsyncClient(base_url=url, limits=_LIMITS, headers=_bearer(key), verify=_trusted()))
    except httpx.InvalidURL as error:
        raise ValueError(str(error)) from error


@cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates are taken, as httpx decides it. Reading all of them takes longer than many a request."""
    return httpx.create_ssl_context()


def _bearer(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


class _translated:  # noqa: N801  reads as the statement that it is
    """httpx's errors as NoAnswer. A class, since a generator's context manager costs more than the reading itself."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, httpx.TimeoutException):
            seconds = CONNECT_S if isinstance(error, httpx.ConnectTimeout) else self._timeout_s
            raise NoAnswer(f"no answer within {seconds:g} s", timed_out=True) from error
        if isinstance(error, SSEError):
            raise NoAnswer(f"not an event stream: {error}", timed_out=False) from error
        if isinstance(error, httpx.TransportError | httpx.StreamError):
            why = str(error) or type(error).__name__
            raise NoAnswer(why, timed_out=False, tls=_is_tls(error)) from error


def _is_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
