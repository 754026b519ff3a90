"""The node's Docker engine, asked over one `docker system dial-stdio`: as the docker command of this user reaches it.

Its context, its socket, its rights, whatever they are, are the command's own. HTTP/1.1 by hand, since the import of
http.client costs as much as everything else that the probe does.
"""

from __future__ import annotations

import json
import os
import socket
from functools import partial

from dspark_deploy.remote.programs._frame import find_on_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from io import BufferedReader
    from typing import Any

OK, CREATED, NO_CONTENT = 200, 201, 204
NOT_FOUND = 404
READ_SIZE = 65536
# `docker system dial-stdio` (docker/cli, cli/command/system/dial_stdio.go) and `docker version` differ in their words.
DENIED = ("permission denied",)
DOWN = ("cannot connect to the docker daemon", "no such file or directory", "connection refused", "no such host")
ABSENT = ("not found",)


class NoEngine(Exception):
    """The engine can't be asked; `access` is one of permission, down, absent, unknown."""

    def __init__(self, access: str, detail: str) -> None:
        super().__init__(detail)
        self.access = access
        self.detail = detail


def access_by(said: str) -> str:
    """What the command's own words mean: permission, down, absent or unknown."""
    lower = said.lower()
    for access, phrases in (("permission", DENIED), ("down", DOWN), ("absent", ABSENT)):
        if any(phrase in lower for phrase in phrases):
            return access
    return "unknown"


class Response:
    """The head of an answer, and its body as it comes. The body has to be read to its end before the next question."""

    def __init__(self, reader: BufferedReader, *, bodiless: bool) -> None:
        self._reader = reader
        self.status = int(self._line().split(b" ", 2)[1])
        self.headers: dict[str, str] = {}
        while line := self._line():
            name, _, value = line.partition(b":")
            self.headers[name.strip().lower().decode()] = value.strip().decode(errors="replace")
        self._bodiless = bodiless or self.status == NO_CONTENT

    def parts(self) -> Iterator[bytes]:
        """The body. Raises OSError or ValueError where it is cut off."""
        if self._bodiless:
            return
        if self.headers.get("transfer-encoding") != "chunked":
            if "content-length" in self.headers:
                yield self._exactly(int(self.headers["content-length"]))
            else:  # what a command in a container prints: it ends with the connection
                yield from iter(partial(self._reader.read1, READ_SIZE), b"")
            return
        while size := int(self._line().split(b";")[0], 16):
            yield self._exactly(size)
            self._line()
        while self._line():  # trailers
            pass

    def _line(self) -> bytes:
        line = self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the answer ended too early")
        return line.rstrip(b"\r\n")

    def _exactly(self, size: int) -> bytes:
        data = self._reader.read(size)
        if len(data) < size:
            raise ConnectionError("the answer ended too early")
        return data


class Engine:
    """Questions to the engine, one after the other on one connection."""

    def __init__(self, timeout_s: float) -> None:
        self._prefix = ""
        docker = find_on_path("docker")
        self._absent = docker is None
        if docker is None:
            return
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(timeout_s)
        self._errors, their_errors = os.pipe()
        wiring = [(os.POSIX_SPAWN_DUP2, fd, i) for i, fd in enumerate((theirs.fileno(), theirs.fileno(), their_errors))]
        os.posix_spawn(docker, ["docker", "system", "dial-stdio"], os.environ, file_actions=wiring)
        theirs.close()
        os.close(their_errors)
        self._reader: BufferedReader = self._socket.makefile("rb")

    def version(self) -> str:
        """The engine's version. First of all questions: the others are asked in the API version that it speaks."""
        answer = self.get("/version")
        if not isinstance(answer, dict) or "ApiVersion" not in answer:
            raise NoEngine("unknown", f"the docker daemon does not tell its version: {answer}")
        self._prefix = f"/v{answer['ApiVersion']}"
        return str(answer.get("Version"))

    def get(self, path: str, absent: tuple[int, ...] = (NOT_FOUND,)) -> Any:
        """The JSON answer to one GET; None where the status is one of `absent`. Raises NoEngine."""
        status, _, body = self.ask("GET", path)
        if status in absent:
            return None
        if status != OK:
            raise refused(status, body)
        return json.loads(body)

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (in lower case) and body of one question; `document` is sent as JSON. Raises NoEngine."""
        try:
            response = self.open(method, path, document)
            return response.status, response.headers, b"".join(response.parts())
        except (OSError, ValueError) as error:
            raise self.gone(error) from error

    def open(self, method: str, path: str, document: Any = None, headers: Mapping[str, str] | None = None) -> Response:
        """Ask, and read the head of the answer. Raises NoEngine, OSError or ValueError; see `gone`."""
        if self._absent:
            raise NoEngine("absent", f"docker: not found on PATH ({os.environ['PATH']})")
        body = b"" if document is None else json.dumps(document).encode()
        lines = [f"{method} {self._prefix}{path} HTTP/1.1", "Host: docker", f"Content-Length: {len(body)}"]
        lines += ["Content-Type: application/json"] if body else []
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self._socket.sendall("\r\n".join((*lines, "\r\n")).encode() + body)
        return Response(self._reader, bodiless=method == "HEAD")

    def gone(self, error: Exception) -> NoEngine:
        """Why a question had no answer, in the command's own words where it had some."""
        if isinstance(error, TimeoutError):
            return NoEngine("unknown", "the docker daemon gives no answer")
        said = self._said()
        return NoEngine(access_by(said), said or f"the docker daemon hung up ({error})")

    def _said(self) -> str:
        """What the command wrote to standard error; it has ended or is about to."""
        data = b""
        while part := os.read(self._errors, READ_SIZE):
            data += part
        return data.decode(errors="replace").strip()


def refused(status: int, body: bytes) -> NoEngine:
    """An answer that is none."""
    try:
        said = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        said = body.decode(errors="replace").strip()
    return NoEngine("unknown", f"the docker daemon answered {status}: {said}")


def quoted(text: str) -> str:
    """As it stands in a path or a query."""
    plain = "/:@._-"
    return "".join(c if (c.isascii() and c.isalnum()) or c in plain else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())
