"""The same way to the served API as forwarded.py, for a client that holds many streams at once.

A channel of the SSH connection is no socket that an event loop could wait for. So each becomes one end of a socket
pair, and two threads carry its bytes; the loop sees a plain socket, and still no port is opened on the controller.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

import httpcore

from dspark_deploy.remote.forwarded import CONNECT_S
from dspark_deploy.remote.host import Host, Stream

PIECE = 2**16  # bytes


def forwarded_async_pool(host: Host, keep_s: float) -> httpcore.AsyncConnectionPool:
    """A pool that dials through the node and keeps an idle connection for `keep_s`."""
    return httpcore.AsyncConnectionPool(
        network_backend=_Backend(host), max_connections=None, max_keepalive_connections=256, keepalive_expiry=keep_s
    )


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, host: Host) -> None:
        self._host = host

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        del local_address, socket_options  # of a real socket
        dial = partial(self._host.dial, host, port, timeout_s=timeout or CONNECT_S)
        try:
            stream = await asyncio.to_thread(dial)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return _NetworkStream(*await asyncio.open_connection(sock=_as_socket(stream)))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _NetworkStream(httpcore.AsyncNetworkStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(f"no data within {timeout} s") from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            self._writer.write(buffer)
            async with asyncio.timeout(timeout):
                await self._writer.drain()
        except TimeoutError as error:
            raise httpcore.WriteTimeout(f"nothing taken within {timeout} s") from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):  # the other side ended first
            await self._writer.wait_closed()

    def get_extra_info(self, info: str) -> Any:
        """`is_readable` is how the pool asks whether an idle connection has ended meanwhile."""
        return self._reader.at_eof() if info == "is_readable" else None


def _as_socket(stream: Stream) -> socket.socket:
    """A socket that an event loop can wait for; of a local node the stream is one already."""
    if isinstance(stream, socket.socket):
        return stream
    ours, theirs = socket.socketpair()
    stream.settimeout(None)
    threading.Thread(target=_carry, args=(theirs, stream), daemon=True).start()
    threading.Thread(target=_carry, args=(stream, theirs), daemon=True).start()
    return ours


def _carry(source: Stream, sink: Stream) -> None:
    """Everything from one side to the other until either ends; then both do, and with them the other thread."""
    ended = (OSError, EOFError)  # a channel whose connection is gone raises the second
    with contextlib.suppress(*ended):
        while data := source.recv(PIECE):
            while data:
                sent = sink.send(data)
                if not sent:
                    raise BrokenPipeError
                data = data[sent:]
    for side in (source, sink):
        with contextlib.suppress(*ended):
            if isinstance(side, socket.socket):
                side.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it, which close() alone does not
        with contextlib.suppress(*ended):
            side.close()
