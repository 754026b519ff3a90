"""The two ranks' meeting: a TCP rendezvous on the head's fabric address, barriers while loading, heartbeats after it.

One connection between the ranks carries JSON lines. It goes over the fabric, so that a pulled cable is noticed by the
silence, and a dead peer by the end of the stream.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from argparse import Namespace
from contextlib import suppress
from typing import Any

from . import vllm_host as host
from .vllm_log import Death

PING_S = 0.25
RETRY_S = 0.1
DEFAULT_LIMIT_S = 1800
HEADS_WORD = {"kv", "ready"}
"""Barriers at which the real worker waits for the head's next word: a head that has ended leaves it there for ever."""


class Lonely:
    """The peer of a single rank: there is none, and none is missed."""

    def meet(self) -> None:
        """Wait for the other rank."""

    def barrier(self, name: str) -> None:
        """Wait until the other rank is here too."""

    def is_gone(self) -> bool:
        """Has the other rank ended?"""
        return False

    def is_silent(self, limit_s: float) -> bool:
        """Has nothing come from the other rank for this long?"""
        return limit_s < 0


class Peer(Lonely):
    """The other rank. `meet` first; from then on a thread listens and another one pings."""

    def __init__(self, arguments: Namespace) -> None:
        self._rank = arguments.node_rank
        self._address, self._port = arguments.master_addr, arguments.master_port
        self._limit_s = getattr(arguments, "distributed_timeout_seconds", None) or DEFAULT_LIMIT_S
        self._hello = {
            "rank": self._rank,
            "arguments": {key: str(value) for key, value in vars(arguments).items()},
        }
        self._changed = threading.Condition()
        self._reached: set[str] = set()
        self._gone = False
        self._last_sign = 0.0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sending = threading.Lock()

    def meet(self) -> None:
        """Wait for the other rank, in silence, as the real one does. Raises Death when it does not come in time."""
        self._socket = self._listen() if self._rank == 0 else self._dial()
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_sign = time.monotonic()
        # What the other rank was told is exchanged and not compared: the engine takes ranks that differ in silence.
        self._send(self._hello)
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._ping, daemon=True).start()
        self.barrier("hello")

    def _listen(self) -> socket.socket:
        with self._socket as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(host.endpoint(self._address, self._port))
            except OSError as error:
                raise Death(
                    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
                    f"address. port: {self._port}, useIpv6: false, code: -{error.errno}, message: {error.strerror}"
                ) from None
            listener.listen(1)
            listener.settimeout(self._limit_s)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                raise Death(self._nobody_came()) from None
        connection.settimeout(None)
        return connection

    def _dial(self) -> socket.socket:
        deadline = time.monotonic() + self._limit_s
        own = os.environ.get("VLLM_HOST_IP", "")
        source = (own, 0) if own and host.endpoint(self._address, self._port)[0] == self._address else None
        while time.monotonic() < deadline:
            with suppress(OSError):
                return socket.create_connection(host.endpoint(self._address, self._port), 5, source)
            time.sleep(RETRY_S)
        raise Death(
            f"torch.distributed.DistNetworkError: The client socket has timed out after {self._limit_s * 1000}ms while "
            f"trying to connect to ({self._address}, {self._port})."
        )

    def _nobody_came(self) -> str:
        return (
            f"torch.distributed.DistStoreError: Timed out after {self._limit_s + 1} seconds waiting for clients. "
            "1/2 clients joined."
        )

    def barrier(self, name: str) -> None:
        """Wait until both ranks are here. Raises Death when the other one has ended."""
        self._send({"barrier": name})
        with self._changed:
            stays = self._rank == 1 and name in HEADS_WORD
            self._changed.wait_for(lambda: name in self._reached or (self._gone and not stays))
            if name in self._reached:
                return
        raise Death(
            f"[rank{self._rank}]: [c10d] recvValue failed on SocketImpl(remote={self._address}:{self._port}): "
            "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, remote process exited or there "
            "was a network error",
        )

    def is_gone(self) -> bool:
        """Has the other rank ended?"""
        return self._gone

    def is_silent(self, limit_s: float) -> bool:
        """Has nothing come from the other rank for this long?"""
        return time.monotonic() - self._last_sign > limit_s

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(OSError), self._sending:  # that it is gone is the reader's to say
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _read(self) -> None:
        with suppress(OSError, ValueError), self._socket.makefile("rb") as lines:
            for line in lines:
                self._last_sign = time.monotonic()
                message = json.loads(line)
                with self._changed:
                    if "barrier" in message:
                        self._reached.add(message["barrier"])
                    self._changed.notify_all()
        with self._changed:
            self._gone = True
            self._changed.notify_all()

    def _ping(self) -> None:
        while not self._gone:
            time.sleep(PING_S)
            self._send({"ping": 1})
