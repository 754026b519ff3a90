"""A node reached through SSH: one connection, and everything over it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import paramiko
from pydantic import SecretStr

from dspark_deploy.errors import DsparkError, NodeUnreachable, StepFailed
from dspark_deploy.remote.host import Stream
from dspark_deploy.remote.link import Link
from dspark_deploy.remote.program import COMMAND, PATH_SETUP, READ_SIZE, PipedHost

SESSIONS = 8  # at a time: sshd refuses the eleventh (MaxSessions)
OPEN_S = 10.0  # a channel
REFUSED_TURN_S = 0.02
ENDING_S = 1.0  # a command that has seen the end of its input
SLOT_S = 60.0  # to wait until one of SESSIONS is free
ALIVE_EVERY_S, ALIVE_WITHIN_S = 5.0, 9.0  # a dead link is noticed within their sum
# The shell's own list of what chooses another engine: a pattern can't be unset.
DIAL_ENGINE = (
    f"/bin/sh -c '{PATH_SETUP}; unset DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_TLS DOCKER_TLS_VERIFY "
    "DOCKER_CERT_PATH DOCKER_API_VERSION DOCKER_CUSTOM_HEADERS; exec docker system dial-stdio'"
)
PROHIBITED, REFUSED = 1, 2  # RFC 4254, 5.1: administratively prohibited, connect failed


class SshHost(PipedHost):
    """One node behind one SSH connection. Any thread may use it."""

    def __init__(self, name: str, link: Link, api_key: SecretStr | None = None) -> None:
        super().__init__(name, f"{name} ({link.target.login})", api_key)
        self._link = link
        self._transport = link.transport
        self._sessions = threading.BoundedSemaphore(SESSIONS)
        self._closed = threading.Event()
        self._silent = False
        threading.Thread(target=self._watch_link, name=f"{name} keepalive", daemon=True).start()

    @property
    def address(self) -> str:
        """See Host."""
        return self._link.target.hostname

    def open_program(self) -> ChannelPipe:
        """See PipedHost."""
        return self._execute(COMMAND)

    def open_engine(self) -> ChannelPipe:
        """See PipedHost."""
        return self._execute(DIAL_ENGINE)

    def lost(self) -> DsparkError | None:
        """See PipedHost."""
        if self._transport.is_active():
            return None
        return NodeUnreachable(
            f"{self.where}: the SSH connection is gone",
            why=self._why_lost(),
            remedy=f"see that the machine is on, then run the command again; try `{self._link.target.command}`",
            node=self.name,
        )

    def _why_lost(self) -> str:
        if self._closed.is_set():
            return "this command closed it"
        if self._silent:
            return f"no answer to a keepalive within {ALIVE_WITHIN_S:g} s"
        error = self._transport.saved_exception  # of the thread that read, or of a channel that was refused before
        broken = error is not None and not isinstance(error, (EOFError, paramiko.ChannelException))
        return str(error) if broken else "the other side ended it"

    def dial(self, address: str, port: int, *, timeout_s: float) -> Stream:
        """See Host. Raises TimeoutError where nothing answers, StepFailed where sshd forbids it."""
        try:
            return self._transport.open_channel("direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=timeout_s)
        except paramiko.ChannelException as error:
            if error.code == PROHIBITED:
                raise self._forbidden(address, port) from error
            raise ConnectionRefusedError(f"{address} port {port} on the {self.name}: {error.text}") from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            if (lost := self.lost()) is not None:
                raise lost from error
            raise TimeoutError(f"{address} port {port} on the {self.name}: no answer in {timeout_s:g} s") from error

    def close(self) -> None:
        """See Host. sshd ends what still runs: it sees the end of its input."""
        self._closed.set()
        self._link.close()

    def _execute(self, command: str) -> ChannelPipe:
        if not self._sessions.acquire(timeout=SLOT_S):
            raise StepFailed(
                f"{self.where}: {SESSIONS} commands at a time still run after {SLOT_S:g} s",
                remedy="run the command again; `dspark status` shows what is left",
                node=self.name,
            )
        try:
            channel = self._open_session()
            channel.exec_command(command)
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._sessions.release()
            raise self.lost() or self._no_session(error) from error
        return ChannelPipe(channel, self._sessions.release)

    def _open_session(self) -> paramiko.Channel:
        """A session channel. sshd may still count some that have just ended, so a refusal is not believed at once."""
        deadline = time.monotonic() + OPEN_S
        while True:
            try:
                return self._transport.open_session(timeout=OPEN_S)
            except paramiko.ChannelException as error:
                if error.code != REFUSED or time.monotonic() > deadline:
                    raise
            time.sleep(REFUSED_TURN_S)

    def _no_session(self, error: Exception) -> StepFailed:
        return StepFailed(
            f"{self.where}: sshd opens no session for a command",
            why=str(error),
            remedy="see that MaxSessions in its sshd_config is 10 or more and that the login may run commands",
            node=self.name,
        )

    def _forbidden(self, address: str, port: int) -> StepFailed:
        return StepFailed(
            f"{self.where}: sshd forbids forwarding to {address} port {port}",
            remedy="allow it in the node's sshd_config (AllowTcpForwarding local), then reload sshd",
            node=self.name,
        )

    def _watch_link(self) -> None:
        """Ask now and then, and end a connection that does not answer: its readers then learn it at once."""
        while not self._closed.wait(ALIVE_EVERY_S) and self._transport.is_active():
            limit = threading.Timer(ALIVE_WITHIN_S, self._give_up)
            limit.daemon = True
            limit.start()
            # Any answer will do; it returns without one as soon as the transport ends.
            self._transport.global_request("keepalive@openssh.com", wait=True)
            limit.cancel()

    def _give_up(self) -> None:
        self._silent = True
        self._transport.close()


class ChannelPipe:
    """A command behind an exec channel. See program.Pipe."""

    def __init__(self, channel: paramiko.Channel, free: Callable[[], None]) -> None:
        self._channel = channel
        self._free = free
        self._said = b""
        self._is_open = True
        self._lock = threading.Lock()

    def send(self, data: bytes) -> int:
        """See Stream. 0 where the other side has ended."""
        return self._channel.send(data)

    def recv(self, size: int) -> bytes:
        """See Stream."""
        return self._channel.recv(size)

    def settimeout(self, timeout: float | None) -> None:
        """See Stream."""
        self._channel.settimeout(timeout)

    def errors(self) -> str:
        """See Pipe."""
        while self._channel.recv_stderr_ready():
            self._said += self._channel.recv_stderr(READ_SIZE)
        return self._said.decode(errors="replace")

    def ended(self) -> bool:
        """See Pipe."""
        return self._channel.closed or bool(self._channel.eof_received)

    def close(self) -> None:
        """See Stream. Waits for the command's own end: sshd counts its session until then."""
        with self._lock:
            was_open, self._is_open = self._is_open, False
        if not was_open:
            return
        # Where the link is gone or the end takes too long, closing is all that is left.
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()
            self._channel.settimeout(ENDING_S)
            while self._channel.recv(READ_SIZE):
                pass
            self._channel.status_event.wait(ENDING_S)
        self._channel.close()
        self._free()
