"""This machine as a node: the same programs, the same answers, without SSH."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from pydantic import SecretStr

from dspark_deploy.errors import StepFailed
from dspark_deploy.remote.host import Stream
from dspark_deploy.remote.program import BOOTSTRAP, Pipe, PipedHost
from dspark_deploy.remote.programs._frame import tidy
from dspark_deploy.settings import API_KEY

ENDING_S = 2.0  # a program sees the end of its input at once


class LocalHost(PipedHost):
    """The node that the tool itself runs on."""

    def __init__(self, name: str, api_key: SecretStr | None = None) -> None:
        super().__init__(name, f"{name} (this machine)", api_key)
        self._pipes: list[LocalPipe] = []

    @property
    def address(self) -> str:
        """See Host."""
        return "127.0.0.1"

    def open_program(self) -> Pipe:
        """See PipedHost. The tool's own Python is there and new enough."""
        return self._open((sys.executable, "-I", "-S", "-c", BOOTSTRAP))

    def open_engine(self) -> Pipe:
        """See PipedHost."""
        return self._open(("docker", "system", "dial-stdio"))

    def lost(self) -> None:
        """This machine is always there."""

    def dial(self, address: str, port: int, *, timeout_s: float) -> Stream:
        """See Host."""
        return socket.create_connection((address, port), timeout=timeout_s)

    def close(self) -> None:
        """See Host."""
        for pipe in self._pipes:
            pipe.close()
        self._pipes.clear()

    def _open(self, argv: Sequence[str]) -> LocalPipe:
        try:
            pipe = LocalPipe(argv)
        except OSError as error:
            raise StepFailed(
                f"{self.where}: {argv[0]} can't be started: {error.strerror}",
                remedy=f"install {argv[0]} on this machine",
                node=self.name,
            ) from error
        self._pipes = [*(pipe for pipe in self._pipes if not pipe.closed), pipe]
        return pipe


class LocalPipe:
    """A child of this process behind a socket pair. See program.Pipe."""

    def __init__(self, argv: Sequence[str]) -> None:
        environment = dict(os.environ)
        environment.pop(API_KEY, None)  # nothing that runs here needs it
        tidy(environment)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the pipe
        self._socket, theirs = socket.socketpair()
        with theirs:
            # A session of its own, so that Ctrl-C on the terminal reaches us and not a step in the middle.
            self._child = subprocess.Popen(
                argv,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._errors,
                env=environment,
                cwd=Path.home(),
                start_new_session=True,
            )
        self._said = ""
        self._lock = threading.Lock()  # whoever reads to the end closes, and so may who wants it to end
        self.closed = False

    def send(self, data: bytes) -> int:
        """See Stream."""
        return self._socket.send(data)

    def recv(self, size: int) -> bytes:
        """See Stream."""
        return self._socket.recv(size)

    def settimeout(self, timeout: float | None) -> None:
        """See Stream."""
        self._socket.settimeout(timeout)

    def errors(self) -> str:
        """See Pipe."""
        with self._lock:
            return self._said if self.closed else self._errors_so_far()

    def _errors_so_far(self) -> str:
        descriptor = self._errors.fileno()  # not read through the file: its position is the child's too
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")

    def ended(self) -> bool:
        """See Pipe."""
        return self.closed or self._child.poll() is not None

    def close(self) -> None:
        """See Stream. The child sees the end of its input; one that does not end then is killed."""
        with self._lock:
            if not self.closed:
                self._end_child()
                self._said = self._errors_so_far()
                self._errors.close()
                self.closed = True

    def _end_child(self) -> None:
        with contextlib.suppress(OSError):  # the child hung up first
            self._socket.shutdown(socket.SHUT_RDWR)  # also wakes a thread that reads
        self._socket.close()
        try:
            self._child.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
