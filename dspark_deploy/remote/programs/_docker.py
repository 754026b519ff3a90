"""The node's Docker engine, asked over one `docker system dial-stdio`: as the docker command of this user reaches it.

Its context, its socket, its rights, whatever they are, are the command's own. HTTP/1.1 by hand, since the import of
http.client costs as much as everything else that the probe does.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket

from dspark_deploy.remote.programs._frame import find_on_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

OK = 200
BAD_REQUEST, NOT_FOUND = 400, 404
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
        self._reader: BinaryIO = self._socket.makefile("rb")

    def version(self) -> str:
        """The engine's version. First of all questions: the others are asked in the API version that it speaks."""
        answer = self.get("/version")
        if not isinstance(answer, dict) or "ApiVersion" not in answer:
            raise NoEngine("unknown", f"the docker daemon does not tell its version: {answer}")
        self._prefix = f"/v{answer['ApiVersion']}"
        return str(answer.get("Version"))

    def get(self, path: str, absent: tuple[int, ...] = (NOT_FOUND,)) -> Any:
        """The JSON answer to one GET; None where the status is one of `absent`. Raises NoEngine."""
        if self._absent:
            raise NoEngine("absent", f"docker: not found on PATH ({os.environ['PATH']})")
        try:
            self._socket.sendall(f"GET {self._prefix}{path} HTTP/1.1\r\nHost: docker\r\n\r\n".encode())
            status, body = self._response()
        except TimeoutError as error:
            raise NoEngine("unknown", "the docker daemon gives no answer") from error
        except (OSError, ValueError) as error:
            said = self._said()
            raise NoEngine(access_by(said), said or f"the docker daemon hung up ({error})") from error
        if status in absent:
            return None
        if status != OK:
            raise NoEngine("unknown", f"the docker daemon answered {status}: {body.decode(errors='replace').strip()}")
        return json.loads(body)

    def _response(self) -> tuple[int, bytes]:
        """Status and body. Raises OSError or ValueError where it is cut off."""
        status = int(self._line().split(b" ", 2)[1])
        headers = {}
        while line := self._line():
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip().lower()
        if headers.get(b"transfer-encoding") == b"chunked":
            return status, self._chunks()
        return status, self._exactly(int(headers.get(b"content-length", b"0")))

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._line().split(b";")[0], 16):
            body += self._exactly(size)
            self._line()
        while self._line():  # trailers
            pass
        return body

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

    def _said(self) -> str:
        """What the command wrote to standard error; it has ended or is about to."""
        data = b""
        while part := os.read(self._errors, 4096):
            data += part
        return data.decode(errors="replace").strip()


def read_image(engine: Engine, reference: str) -> dict[str, Any] | None:
    """One image by reference, or None where the engine knows no such."""
    # A reference that the engine can't read names nothing, too.
    found = engine.get(f"/images/{_quoted(reference)}/json", absent=(NOT_FOUND, BAD_REQUEST))
    if found is None:
        return None
    return {
        "reference": reference,
        "id": found["Id"],
        "layers": (found.get("RootFS") or {}).get("Layers") or [],
        "config": _config_hash(found.get("Config") or {}),
        "architecture": found.get("Architecture") or "",
        "digests": found.get("RepoDigests") or [],
    }


def read_containers(engine: Engine, pair: str) -> list[dict[str, Any]]:
    """What the engine tells of every container of the pair: those with our label, and those of its compose project."""
    ids: dict[str, None] = {}
    for label in (f"dspark.pair={pair}", f"com.docker.compose.project={pair}"):
        filters = _quoted(json.dumps({"label": [label]}))
        ids.update((found["Id"], None) for found in engine.get(f"/containers/json?all=1&filters={filters}") or [])
    inspected = (engine.get(f"/containers/{container_id}/json") for container_id in ids)
    return [_of_interest(found) for found in inspected if found is not None]


def _of_interest(found: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's own names and shape, so that one parser reads it here and there; without environment and argv."""
    config = found.get("Config") or {}
    kept = {name: found.get(name) for name in ("Id", "Name", "Image", "State", "RestartCount")}
    return {**kept, "Config": {name: config.get(name) for name in ("Labels", "StopTimeout")}}


def _config_hash(config: Mapping[str, Any]) -> str:
    """One value over what a container of the image runs with; two images with equal layers may differ in it."""
    runs_with = {name: config.get(name) or None for name in ("Env", "Entrypoint", "Cmd", "WorkingDir", "User")}
    return hashlib.sha256(json.dumps(runs_with, sort_keys=True).encode()).hexdigest()


def _quoted(text: str) -> str:
    plain = "/:@._-"
    return "".join(c if (c.isascii() and c.isalnum()) or c in plain else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())
