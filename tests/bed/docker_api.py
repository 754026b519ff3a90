"""What the tests ask a node's dockerd: straight over its socket, so that looking costs a few milliseconds."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote


class DockerRefused(Exception):
    """dockerd answered with an error; its message."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container, running or not."""

    id: str
    name: str
    image: str
    state: str  # created, running, restarting, exited, dead
    created: int  # seconds since 1970
    labels: dict[str, str]


class DockerApi:
    """One dockerd, by the path of its socket. OSError where none listens."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ping(self) -> bool:
        """Does it answer?"""
        try:
            return bool(self.call("GET", "/_ping") == "OK")
        except (OSError, http.client.HTTPException, DockerRefused):
            return False

    def containers(self) -> list[Container]:
        """All containers, stopped ones included."""
        return [
            Container(
                row["Id"],
                row["Names"][0].lstrip("/"),
                row["Image"],
                row["State"],
                row["Created"],
                row["Labels"],
            )
            for row in self.call("GET", "/containers/json?all=1")
        ]

    def inspect(self, container: str) -> dict[str, Any]:
        """`docker inspect` of a container."""
        found: dict[str, Any] = self.call("GET", f"/containers/{container}/json")
        return found

    def kill(self, container: str) -> None:
        """Kill a container's processes; it stays, exited."""
        self.call("POST", f"/containers/{container}/kill")

    def remove(self, container: str) -> None:
        """Kill and remove a container."""
        self.call("DELETE", f"/containers/{container}?force=1&v=1")

    def tags(self) -> dict[str, str]:
        """Every tag -> image id."""
        rows = self.call("GET", "/images/json")
        return {tag: row["Id"] for row in rows for tag in row["RepoTags"] or () if tag != "<none>:<none>"}

    def tag(self, image: str, reference: str) -> None:
        """Give an image this tag, taking it from another one that had it."""
        name, _, version = reference.rpartition(":")
        self.call("POST", f"/images/{quote(image, safe='')}/tag?repo={quote(name, safe='')}&tag={quote(version)}")

    def untag(self, reference: str) -> None:
        """Remove a tag, and the image with its last one."""
        self.call("DELETE", f"/images/{quote(reference, safe='')}?force=1")

    def execute(self, container: str, *argv: str) -> str:
        """Run a command in a running container; what it prints, in the engine's frames."""
        body = json.dumps({"AttachStdout": True, "AttachStderr": True, "Cmd": argv})
        made = json.loads(self._request("POST", f"/containers/{container}/exec", body, "application/json"))
        return self._request("POST", f"/exec/{made['Id']}/start", '{"Detach": false}', "application/json")

    def load(self, archive: Path) -> None:
        """Load images from an archive."""
        with archive.open("rb") as body:
            told = self._request("POST", "/images/load?quiet=1", body, "application/x-tar", timeout=600)
        if '"error"' in told:
            raise DockerRefused(told.strip())

    def call(self, verb: str, path: str) -> Any:
        """One request without a body. JSON comes back parsed, anything else as text."""
        text = self._request(verb, path)
        return json.loads(text) if text[:1] in {"{", "["} else text

    def _request(self, verb: str, path: str, body: Any = None, kind: str = "", timeout: float = 20) -> str:
        connection = _UnixConnection(self._path, timeout)
        try:
            connection.request(verb, path, body=body, headers={"Content-Type": kind} if kind else {})
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status >= 400:
            raise DockerRefused(text.strip())
        return text


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("docker", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket's path instead of to a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
