"""HTTP to a node's Docker engine over `docker system dial-stdio`, as the docker SDK and http.client want it."""

from __future__ import annotations

import contextlib
import http.client
import io
import threading
from collections.abc import Callable
from typing import Any

from docker.transport.sshconn import SSHHTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPResponse
from urllib3.connection import HTTPConnection

from dspark_deploy.errors import DsparkError, StepFailed
from dspark_deploy.remote.program import Pipe, PipedHost
from dspark_deploy.remote.programs._engine import access_by

ANSWER_S = 20.0  # one answer of the engine; longer where it is asked to wait itself


class PipeSocket:
    """What http.client wants of a socket, over a pipe. The pipe ends when the socket and its files are closed."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._users = 1
        self._lock = threading.Lock()

    def sendall(self, data: bytes) -> None:
        """Send all of it. Raises BrokenPipeError where the other side has ended."""
        view = memoryview(data)
        while view:
            try:
                sent = self.pipe.send(bytes(view))
            except TimeoutError:
                raise
            except OSError as error:
                raise BrokenPipeError(str(error)) from error
            if not sent:
                raise BrokenPipeError("the other side has ended")
            view = view[sent:]

    def makefile(self, mode: str, *_: Any) -> io.BufferedReader:
        """A file that reads what comes."""
        assert mode == "rb"  # noqa: S101  http.client asks for no other
        with self._lock:
            self._users += 1
        return io.BufferedReader(_Reader(self.pipe, self.close))

    def settimeout(self, timeout: float | None) -> None:
        """Of one send or receive."""
        self.pipe.settimeout(timeout)

    def close(self) -> None:
        """One user less."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
        self.pipe.close()


class _Reader(io.RawIOBase):
    def __init__(self, pipe: Pipe, closed: Callable[[], None]) -> None:
        self._pipe = pipe
        self._closed = closed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._pipe.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._closed()


class DialedConnection(HTTPConnection):
    """One HTTP connection to the engine. What the docker command says becomes part of the error."""

    def __init__(self, host: PipedHost) -> None:
        super().__init__("docker", timeout=ANSWER_S)
        self._host = host
        self._pipe: Pipe | None = None

    def connect(self) -> None:
        """See HTTPConnection."""
        self._pipe = self._host.open_engine()
        self._pipe.settimeout(ANSWER_S)
        self.sock = PipeSocket(self._pipe)  # all of a socket that http.client uses

    @property
    def is_connected(self) -> bool:
        """Whether one out of the pool can be used again. The pool itself would ask select, which knows no channel."""
        return self._pipe is not None and not self._pipe.ended()

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # urllib3's own override of http.client's
        """See HTTPConnection. Raises StepFailed or NodeUnreachable where the engine was not reached."""
        try:
            return super().getresponse()
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise no_engine(self._host, self._pipe.errors() if self._pipe else "", error) from error

    def ask(self, path: str) -> HTTPResponse:
        """One GET whose answer is read as it comes."""
        with contextlib.suppress(BrokenPipeError):  # the command has ended: the answer's absence says why
            self.request("GET", path, preload_content=False)
        return self.getresponse()

    def be_patient(self) -> None:
        """From now on, wait for data as long as the connection lives."""
        if self._pipe is not None:
            self._pipe.settimeout(None)

    def hang_up(self) -> None:
        """End it at once; a thread that reads sees the end."""
        if self._pipe is not None:
            self._pipe.close()


class _Pool(HTTPConnectionPool):
    def __init__(self, host: PipedHost) -> None:
        # One is kept between questions; each holds one of the few sessions that sshd allows.
        super().__init__("docker", maxsize=1)
        self._host = host

    def _new_conn(self) -> DialedConnection:
        return DialedConnection(self._host)


class DialedAdapter(SSHHTTPAdapter):
    """The SDK's SSH adapter on a connection that is borrowed: it neither opens nor closes one."""

    def __init__(self, host: PipedHost) -> None:
        super().__init__("ssh://node", timeout=int(ANSWER_S), shell_out=True)
        self._pool = _Pool(host)

    def get_connection(self, url: Any, proxies: Any = None) -> _Pool:  # type: ignore[override]  # its base takes any pool
        """See HTTPAdapter."""
        del url, proxies
        return self._pool

    def close(self) -> None:
        """End the pool's own channels."""
        self._pool.close()


def no_engine(host: PipedHost, said: str, error: Exception) -> DsparkError:
    """Why the engine can't be asked, by what the docker command said."""
    if (lost := host.lost()) is not None:
        return lost
    name = host.name
    match access_by(said):
        case "permission":
            what = "this user may not use docker"
            remedy = f"on the {name}: sudo usermod -aG docker $USER, then log out and in (end shared ssh connections)"
        case "down":
            what, remedy = "the docker daemon does not run", f"on the {name}: sudo systemctl start docker"
        case "absent":
            what, remedy = "docker is not installed", f"install Docker Engine with the compose plugin on the {name}"
        case _:
            what, remedy = "the docker daemon can't be asked", f"try `docker version` on the {name}"
    return StepFailed(f"{host.where}: {what}", why=said.strip() or str(error), remedy=remedy, node=name)
