"""A node's SSH server: one key may log in, commands run in the sandbox, TCP is forwarded on loopback.

Like OpenSSH's: a command gets pipes, sees the end of its input when its channel is closed, and at most ten sessions a
connection run at a time. Unlike it: what still runs a moment after its channel was closed is killed, so that nothing
outlives a rehearsal. There is no subsystem, no terminal and no agent: the tool uses none.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from typing import IO

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_FAILED_CONNECT_FAILED,
    OPEN_SUCCEEDED,
)

USER = "spark"
SESSIONS = 10  # sshd's default MaxSessions
READ_SIZE = 65536
ENDING_S = 2.0  # for a program whose channel was closed
DRAIN_S = 5.0  # for the output of one that ended
DIAL_S = 5.0
ACCEPT_S, TURN_S = 1.0, 0.05  # how soon an end is noticed: of a connection, of the server

# The library logs each broken connection with its traceback; the client has its own words for those.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

Mapped = Callable[[str, int], tuple[str, int]]


class SshServer:
    """Listens on a free loopback port from its creation on."""

    def __init__(
        self,
        host_key: paramiko.PKey,
        authorized: paramiko.PKey,
        home: Path,
        environment: Mapping[str, str],
        mapped: Mapped,
    ) -> None:
        self._programs = _Programs(home, environment)
        self._listener = _Listener(host_key, lambda: _Session(authorized, self._programs, mapped))
        self.port: int = self._listener.server_address[1]
        threading.Thread(target=self._listener.serve_forever, args=(TURN_S,), daemon=True).start()

    def close(self) -> None:
        """Refuse new connections and end those that are open, what runs over them included."""
        self._listener.shutdown()
        self._listener.server_close()
        for transport in tuple(self._listener.transports):
            transport.close()
        self._programs.kill()


class _Listener(ThreadingMixIn, TCPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, host_key: paramiko.PKey, new_session: Callable[[], _Session]) -> None:
        self.host_key = host_key
        self.new_session = new_session
        self.transports: set[paramiko.Transport] = set()
        super().__init__(("127.0.0.1", 0), _Connection)


class _Connection(BaseRequestHandler):
    """One connection, from its key exchange to its end."""

    server: _Listener

    def handle(self) -> None:
        """See BaseRequestHandler."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = paramiko.Transport(self.request)
        transport.add_server_key(self.server.host_key)
        self.server.transports.add(transport)
        session = self.server.new_session()
        try:
            transport.start_server(server=session)
            while transport.is_active():
                channel = transport.accept(ACCEPT_S)
                if channel is not None:
                    session.opened(channel)
        except (paramiko.SSHException, EOFError, OSError):
            pass  # the client left, or speaks no SSH
        finally:
            transport.close()
            self.server.transports.discard(transport)


class _Session(paramiko.ServerInterface):
    """What one connection may do. The library asks from the connection's own thread."""

    def __init__(self, authorized: paramiko.PKey, programs: _Programs, mapped: Mapped) -> None:
        self._authorized = authorized
        self._programs = programs
        self._mapped = mapped
        self._dialled: dict[int, socket.socket] = {}  # by channel: what it will be joined to
        self._sessions: dict[int, paramiko.Channel | None] = {}  # the library closes a channel that nobody holds

    def opened(self, channel: paramiko.Channel) -> None:
        """A channel was opened that `check_...` let pass. Commands come later, as requests over it."""
        number = channel.get_id()
        if number in self._dialled:
            _join(channel, self._dialled.pop(number))
        elif number in self._sessions:
            self._sessions[number] = channel

    def get_allowed_auths(self, username: str) -> str:
        """See ServerInterface."""
        del username
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        """See ServerInterface."""
        known = username == USER and key.asbytes() == self._authorized.asbytes()
        return AUTH_SUCCESSFUL if known else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        """See ServerInterface."""
        if kind != "session" or len(self._sessions) >= SESSIONS:
            return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        self._sessions[chanid] = None
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        """See ServerInterface."""
        threading.Thread(target=self._execute, args=(channel, command), daemon=True).start()
        return True

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        """See ServerInterface."""
        del origin
        address, port = self._mapped(*destination)
        if address not in {"127.0.0.1", "::1", "localhost"}:
            return OPEN_FAILED_CONNECT_FAILED  # nothing leaves this machine
        try:
            self._dialled[chanid] = socket.create_connection((address, port), DIAL_S)
        except OSError:
            return OPEN_FAILED_CONNECT_FAILED
        return OPEN_SUCCEEDED

    def _execute(self, channel: paramiko.Channel, command: bytes) -> None:
        try:
            self._programs.run(command.decode(), channel)
        finally:
            self._sessions.pop(channel.get_id(), None)
            channel.close()


class _Programs:
    """What runs on the node for its logins."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._home = home
        self._environment = dict(environment)
        self._running: set[int] = set()

    def run(self, command: str, channel: paramiko.Channel) -> None:
        """Run one command, its bytes passed both ways until it ends."""
        process = subprocess.Popen(
            ("/bin/sh", "-c", command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._home,
            env=self._environment,
            start_new_session=True,
        )
        self._running.add(process.pid)
        try:
            threading.Thread(target=_feed, args=(process, channel), daemon=True).start()
            pumps = [
                threading.Thread(target=_drain, args=(stream, send), daemon=True)
                for stream, send in ((process.stdout, channel.sendall), (process.stderr, channel.sendall_stderr))
            ]
            for pump in pumps:
                pump.start()
            code = process.wait()
        finally:
            self._running.discard(process.pid)
        for pump in pumps:
            pump.join(DRAIN_S)
        with suppress(OSError, EOFError, paramiko.SSHException):
            channel.send_exit_status(code if code >= 0 else 128 - code)

    def kill(self) -> None:
        """End all of it."""
        for leader in tuple(self._running):
            _kill_group(leader)


def _feed(process: subprocess.Popen[bytes], channel: paramiko.Channel) -> None:
    """Hand over what comes. At its end the program has a moment to end by itself, as it should."""
    with suppress(OSError):  # it does not read, or has ended
        while data := channel.recv(READ_SIZE):
            _write_all(process.stdin, data)
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        if channel.closed:
            _kill_group(process.pid)


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _write_all(stream: IO[bytes] | None, data: bytes) -> None:
    if stream is not None:
        stream.write(data)
        stream.flush()


def _drain(stream: IO[bytes] | None, send: Callable[[bytes], None]) -> None:
    if stream is None:
        return
    with stream, suppress(OSError, EOFError, paramiko.SSHException):  # nobody listens any more
        while data := os.read(stream.fileno(), READ_SIZE):
            send(data)


def _join(channel: paramiko.Channel, peer: socket.socket) -> None:
    """Pass bytes both ways between a forwarded channel and what it leads to."""
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def inward() -> None:
        with suppress(OSError, EOFError):
            while data := channel.recv(READ_SIZE):
                peer.sendall(data)
        with suppress(OSError):
            peer.shutdown(socket.SHUT_WR)

    def outward() -> None:
        with peer, channel, suppress(OSError, EOFError, paramiko.SSHException):
            while data := peer.recv(READ_SIZE):
                channel.sendall(data)

    for work in (inward, outward):
        threading.Thread(target=work, daemon=True).start()
