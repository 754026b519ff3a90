"""HTTP through a channel that the node itself dials: no port is opened on the controller.

httpcore is httpx's own engine, and a third of its cost: a question or two is asked with it alone (served.py); what
streams or needs a client's comforts uses httpx over the same way (api.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpcore

from dspark_deploy.remote.host import Host, Stream

CONNECT_S = 10.0


def forwarded_pool(host: Host) -> httpcore.ConnectionPool:
    """A pool that dials through the node, anew for every request: none meets a connection that has been closed.

    Requests raise httpcore's own errors, and those of Host.dial where the node is lost: waiting would not help.
    """
    return httpcore.ConnectionPool(network_backend=_Backend(host), max_keepalive_connections=0)


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
        except OSError as error:
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
