"""Read everything a plan and the checks want to know of a node, in one go, without sudo and without changing a thing.

Request: `pair`, `images` (references), `paths` (~ is the home here), `limit_s` (default 10).
Answer: one document with the shape of facts/node.py. A source that can't be read is null or empty, and `missing` says
why; so is whatever was not read when the time was up. /proc, /sys, /etc and /dev are read below DSPARK_NODE_ROOT.
"""

from __future__ import annotations

import _thread
import grp
import json
import os
import pwd
import socket
import stat
import time

from dspark_deploy.remote.programs._docker import Engine, NoEngine, read_containers, read_image
from dspark_deploy.remote.programs._frame import Call, end_group, find_on_path, serve
from dspark_deploy.remote.programs._network import (
    read_addresses,
    read_hca_ports,
    read_listeners,
    read_netdevs,
    read_text,
)
from dspark_deploy.remote.programs._release import kept_whole
from dspark_deploy.remote.programs._state import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIMIT_S = 10.0
ENGINE_S = 5.0  # one answer of the docker daemon


def main(call: Call) -> None:
    """See the module."""
    request = call.request
    call.end_with_session()
    probe = Probe(os.environ.get("DSPARK_NODE_ROOT", ""))
    _thread.start_new_thread(_answer_in_time, (call, probe, request.get("limit_s", LIMIT_S)))
    # Both take their time to start: they do it while everything else is read.
    compose, engine = ComposeVersion(), Engine(ENGINE_S)
    probe.read_system()
    probe.read_paths(request["paths"])
    probe.read_releases(request["pair"])
    probe.read_engine(engine, request["pair"], request["images"])
    probe.read_compose(compose)
    call.answer(probe.document)
    end_group()


def _answer_in_time(call: Call, probe: Probe, limit_s: float) -> None:
    """A dead mount or a stuck daemon may hold the main thread for ever; what is known by then is still an answer."""
    time.sleep(limit_s)
    probe.document["missing"][probe.reading] = f"no answer within {limit_s:g} s; nothing after it was read"
    call.answer(probe.document)
    end_group()


class Probe:
    """The document as it fills."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.reading = "start"
        self.document: dict[str, Any] = {
            "hostname": socket.gethostname(),
            "user": pwd.getpwuid(os.geteuid()).pw_name,
            "home": os.path.expanduser("~"),
            "architecture": os.uname().machine,
            "time_s": time.time(),
            "machine_id": None,
            "boot_id": None,
            "memory_total_bytes": None,
            "memory_available_bytes": None,
            "rdma_devices": False,
            "docker": {"access": "unknown", "detail": "not asked"},
            "missing": {},
            **{name: [] for name in ("netdevs", "hca_ports", "listeners", "images", "containers", "paths", "releases")},
        }

    def read_system(self) -> None:
        """What the kernel tells."""
        root = self._root
        self._text("machine_id", f"{root}/etc/machine-id")
        self._text("boot_id", f"{root}/proc/sys/kernel/random/boot_id")
        self._take("memory", lambda: self.document.update(_memory(f"{root}/proc/meminfo")))
        self._fill("netdevs", lambda: read_netdevs(f"{root}/sys", read_addresses()))
        self._fill("hca_ports", lambda: read_hca_ports(f"{root}/sys"))
        self._fill("rdma_devices", lambda: _holds_something(f"{root}/dev/infiniband"))
        self._fill("listeners", lambda: read_listeners(f"{root}/proc"))

    def read_paths(self, paths: list[str]) -> None:
        """Each path as this user sees it."""
        self._fill("paths", lambda: [_path(path) for path in paths])

    def read_releases(self, pair: str) -> None:
        """What is kept whole here."""
        self._fill("releases", lambda: kept_whole(f"{state_folder(pair)}/releases"))

    def read_engine(self, engine: Engine, pair: str, references: list[str]) -> None:
        """The engine, the images that were asked for, and the pair's containers."""
        docker = self.document["docker"] = {"access": "unknown", "detail": "", "version": None, "compose": None}
        docker["context"] = _context()
        docker["group_pending"] = _group_pending()
        self.reading = "docker"
        try:
            docker["version"] = engine.version()
            docker["access"] = "ok"
            found = (read_image(engine, reference) for reference in references)
            self.document["images"] = [image for image in found if image is not None]
            self.document["containers"] = read_containers(engine, pair)
        except NoEngine as error:
            docker["access"], docker["detail"] = error.access, error.detail

    def read_compose(self, compose: ComposeVersion) -> None:
        """The compose plugin's version."""
        self.reading = "compose"
        version, said = compose.read()
        self.document["docker"]["compose"] = version
        if version is None:
            self.document["missing"]["compose"] = said

    def _text(self, name: str, path: str) -> None:
        text = read_text(path)
        self.document[name] = text or None
        if not text:
            self.document["missing"][name] = f"{path} can't be read"

    def _fill(self, name: str, read: Callable[[], Any]) -> None:
        self._take(name, lambda: self.document.update({name: read()}))

    def _take(self, name: str, read: Callable[[], None]) -> None:
        """Read one source. What it lacks is told, and the others are read all the same."""
        self.reading = name
        try:
            read()
        except (OSError, ValueError, LookupError) as error:
            self.document["missing"][name] = str(error)


class ComposeVersion:
    """`docker compose version`, running beside the rest."""

    def __init__(self) -> None:
        docker = find_on_path("docker")
        self._reader, writer = os.pipe()
        self._child = 0
        if docker is not None:
            argv = ["docker", "compose", "version", "--short"]
            wiring = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_DUP2, writer, 2)]
            self._child = os.posix_spawn(docker, argv, os.environ, file_actions=wiring)
        os.close(writer)

    def read(self) -> tuple[str | None, str]:
        """The version, or None with what was said instead."""
        with os.fdopen(self._reader, "rb") as output:
            said = output.read().decode(errors="replace").strip()
        if not self._child:
            return None, "docker: not found"
        _, status = os.waitpid(self._child, 0)
        last = said.splitlines()[-1] if said else ""
        if status == 0 and last.lstrip("v")[:1].isdigit():
            return last.lstrip("v"), said
        return None, said.splitlines()[0] if said else "docker compose said nothing"


def _memory(path: str) -> dict[str, int]:
    with open(path, encoding="ascii") as file:
        rows = dict(line.split(":", 1) for line in file if ":" in line)
    return {
        name: int(rows[key].split()[0]) * 1024
        for name, key in (("memory_total_bytes", "MemTotal"), ("memory_available_bytes", "MemAvailable"))
    }


def _holds_something(folder: str) -> bool:
    return os.path.isdir(folder) and bool(os.listdir(folder))


def _path(asked: str) -> dict[str, Any]:
    """An absent path is as writable as its nearest parent, and lies on the same disk."""
    path = os.path.expanduser(asked)
    kind = _kind(path)
    existing = path
    while not os.path.exists(existing) and existing not in {"/", ""}:
        existing = os.path.dirname(existing)
    disk = os.statvfs(existing) if existing else None
    return {
        "path": path,
        "kind": kind,
        "writable": os.access(existing, os.W_OK),
        "free_bytes": disk.f_bavail * disk.f_frsize if disk else None,
    }


def _kind(path: str) -> str:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError:
        return "unreadable"
    if not os.access(path, os.R_OK):
        return "unreadable"
    return "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _context() -> str:
    """The docker context that this user's commands take."""
    try:
        with open(os.path.expanduser("~/.docker/config.json"), encoding="utf-8") as file:
            return json.load(file).get("currentContext") or "default"
    except (OSError, ValueError, AttributeError):
        return "default"


def _group_pending() -> bool:
    """The account is in group docker and this session is not: it began before the change."""
    try:
        group = grp.getgrnam("docker")
    except KeyError:
        return False
    user = pwd.getpwuid(os.geteuid()).pw_name
    return user in group.gr_mem and group.gr_gid not in {os.getegid(), *os.getgroups()}


if __name__ == "__main__":
    serve(main)
