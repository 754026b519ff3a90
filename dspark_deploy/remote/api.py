"""The served API through a channel that the node itself dials: no port is opened on the controller.

httpx is imported here and in served.py only: it is paid for by commands that talk to the API.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from dspark_deploy.errors import DsparkError
from dspark_deploy.remote.host import Host, Stream

ANSWER_S = 30.0  # unless the caller gives another
CONNECT_S = 10.0


def served_client(host: Host, address: str, port: int, *, key: str | None = None) -> httpx.Client:
    """A client for what listens on `address` and `port` as the node sees them. `key` goes along as bearer token.

    Every request dials anew, so that none meets a connection which the server has closed meanwhile. Raises httpx's own
    errors; ConnectError also where the node is lost.
    """
    literal = f"[{address}]" if ":" in address else address
    return httpx.Client(
        base_url=f"http://{literal}:{port}",
        transport=_Transport(host),
        headers={"Authorization": f"Bearer {key}"} if key else None,
        timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
        trust_env=False,  # the controller's proxies have no say
    )


class _Transport(httpx.HTTPTransport):
    """httpx's transport over a pool that dials through the node."""

    def __init__(self, host: Host) -> None:
        super().__init__(verify=False, trust_env=False)
        self._pool = httpcore.ConnectionPool(network_backend=_Backend(host), max_keepalive_connections=0)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, host: Host) -> None:
        self._host = host

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        del local_address, socket_options  # of a real socket
        try:
            return _NetworkStream(self._host.dial(host, port, timeout_s=timeout or CONNECT_S))
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except (OSError, DsparkError) as error:
            raise httpcore.ConnectError(str(error)) from error


class _NetworkStream(httpcore.NetworkStream):
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._stream.settimeout(timeout)
        try:
            return self._stream.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(f"no data within {timeout} s") from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.settimeout(timeout)
        while buffer:
            try:
                sent = self._stream.send(buffer)
            except TimeoutError as error:
                raise httpcore.WriteTimeout(f"nothing taken within {timeout} s") from error
            except OSError as error:
                raise httpcore.WriteError(str(error)) from error
            if not sent:
                raise httpcore.WriteError("the other side has ended")
            buffer = buffer[sent:]

    def close(self) -> None:
        self._stream.close()
