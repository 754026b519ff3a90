"""Read everything a plan and the checks want to know of a node, in one go, without sudo and without changing a thing.

Request: `pair`, `images` (references), `paths` (~ is the home here), `ports` (whose listeners get a name), `look` (what
to look for in the images: `paths`, `names_in`; see look.py), `limit_s` (default 10). Answer: one document with a
`schema` and the shape of facts/node.py. A source that can't be read is null or empty, and `missing` says why; so is
whatever was not read when the time was up. /proc, /sys, /etc and /dev are read below DSPARK_NODE_ROOT.
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

from dspark_deploy.remote.programs._compose import compose_version, version_in
from dspark_deploy.remote.programs._docker import read_containers, read_image, read_info
from dspark_deploy.remote.programs._engine import Engine, NoEngine
from dspark_deploy.remote.programs._frame import Call, end_group, serve
from dspark_deploy.remote.programs._gpu import NvidiaSmi
from dspark_deploy.remote.programs._look import look_into, remove_left_over
from dspark_deploy.remote.programs._network import (
    read_addresses,
    read_hca_ports,
    read_listeners,
    read_netdevs,
    read_text,
)
from dspark_deploy.remote.programs._notes import keep_look, kept_look, kept_marks, kept_note
from dspark_deploy.remote.programs._paths import read_path
from dspark_deploy.remote.programs._release import kept_whole
from dspark_deploy.remote.programs._state import secrets_at, state_folder
from dspark_deploy.remote.programs._system import read_memory, read_processes, read_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dspark_deploy.remote.programs._command import Command

SCHEMA = 1  # see facts/parse.py
LIMIT_S = 10.0
ENGINE_S = 5.0  # one answer of the docker daemon


def main(call: Call) -> None:
    """See the module."""
    request = call.request
    wanted = request.get("look")
    call.end_with_session((lambda: remove_left_over(Engine(ENGINE_S), older_than_s=0)) if wanted else None)
    probe = Probe(os.environ.get("DSPARK_NODE_ROOT", ""))
    _thread.start_new_thread(_answer_in_time, (call, probe, request.get("limit_s", LIMIT_S)))
    # These take their time to start: they do it while everything else is read.
    compose, smi, engine = compose_version(probe.root), NvidiaSmi(probe.root), Engine(ENGINE_S)
    probe.read_kernel(request.get("ports", ()))
    probe.read_home(request["pair"], request["paths"])
    probe.read_engine(engine, request["pair"], request["images"])
    probe.read_compose(compose)
    probe.read_gpu(smi)
    if wanted:
        probe.read_looks(engine, request["pair"], wanted)
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
        self.root = root
        self.reading = "start"
        self._user = pwd.getpwuid(os.geteuid()).pw_name
        lists = ("netdevs", "hca_ports", "listeners", "images", "containers", "paths", "releases")
        more = ("gpus", "gpu_processes", "looks")
        self.document: dict[str, Any] = {
            "schema": SCHEMA,
            "hostname": read_text(f"{root}/proc/sys/kernel/hostname") or socket.gethostname(),
            "user": self._user,
            "home": os.path.expanduser("~"),
            "architecture": os.uname().machine,
            "time_s": time.time(),
            "machine_id": None,
            "boot_id": None,
            "system": {},
            "memory": None,
            "rdma_devices": False,
            "docker": {"access": "unknown", "detail": "not asked"},
            "noted": None,
            "marks": [],
            "state_mode": None,
            "key_at": None,
            "missing": {},
            **{name: [] for name in (*lists, *more)},
        }

    def read_kernel(self, ports: list[int]) -> None:
        """What the kernel tells."""
        root = self.root
        self._text("machine_id", f"{root}/etc/machine-id")
        self._text("boot_id", f"{root}/proc/sys/kernel/random/boot_id")
        self._fill("system", lambda: read_system(root, self._user))
        self._fill("memory", lambda: read_memory(root))
        self._take("processes", self._read_processes)
        self._fill("netdevs", lambda: read_netdevs(f"{root}/sys", read_addresses()))
        self._fill("hca_ports", lambda: read_hca_ports(f"{root}/sys"))
        self._fill("rdma_devices", lambda: _holds_something(f"{root}/dev/infiniband"))
        self._fill("listeners", lambda: read_listeners(f"{root}/proc", ports))

    def _read_processes(self) -> None:
        earlyoom, largest = read_processes(self.root)
        self.document["system"]["earlyoom"] = earlyoom
        if self.document["memory"] is not None:
            self.document["memory"]["consumers"] = largest

    def read_home(self, pair: str, paths: list[str]) -> None:
        """Each path as this user sees it, and what is kept here of the pair."""
        self._fill("paths", lambda: [read_path(path, self.root) for path in paths])
        folder = state_folder(pair)
        self._fill("releases", lambda: kept_whole(f"{folder}/releases"))
        self._fill("noted", lambda: kept_note(folder))
        self._fill("marks", lambda: sorted(kept_marks(folder)))
        self._fill("key_at", lambda: secrets_at(folder))
        self._fill("state_mode", lambda: stat.S_IMODE(os.stat(folder).st_mode) if os.path.isdir(folder) else None)

    def read_engine(self, engine: Engine, pair: str, references: list[str]) -> None:
        """The engine, the images that were asked for with what is known of them, and the pair's containers."""
        docker = self.document["docker"] = {"access": "unknown", "detail": "", "version": None, "compose": None}
        docker["context"] = _context()
        docker["group_pending"] = _group_pending()
        self.reading = "docker"
        try:
            docker["version"] = engine.version()
            docker["access"] = "ok"
            docker.update(read_info(engine, self.root))
            found = [read_image(engine, reference) for reference in references]
            self.document["images"] = [image for image in found if image is not None]
            self.document["containers"] = read_containers(engine, pair)
        except NoEngine as error:
            docker["access"], docker["detail"] = error.access, error.detail

    def read_compose(self, compose: Command) -> None:
        """The compose plugin's version."""
        self.reading = "compose"
        version, said = version_in(compose)
        self.document["docker"]["compose"] = version
        if version is None:
            self.document["missing"]["compose"] = said

    def read_gpu(self, smi: NvidiaSmi) -> None:
        """The GPU and who holds it. Last, since a driver that hangs holds up whoever asks."""
        self._fill("gpus", smi.gpus)
        if "gpus" not in self.document["missing"]:
            self._fill("gpu_processes", smi.processes)

    def read_looks(self, engine: Engine, pair: str, wanted: dict[str, list[str]]) -> None:
        """What is in each image, as far as it is not known: the one thing that is ever made here, and removed again."""
        self.reading = "look"
        try:
            for image in self.document["images"]:
                look = kept_look(state_folder(pair), image["id"])
                if look is None or not set(wanted["paths"]) <= {*look["present"], *look["absent"]}:
                    look = look_into(engine, image["id"], wanted["paths"], wanted["names_in"])
                    keep_look(pair, look)
                self.document["looks"].append(look)
        except NoEngine as error:
            self.document["missing"]["look"] = error.detail

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


def _holds_something(folder: str) -> bool:
    return os.path.isdir(folder) and bool(os.listdir(folder))


def _context() -> str:
    """The docker context that this user's commands take."""
    try:
        with open(os.path.expanduser("~/.docker/config.json"), encoding="utf-8") as file:
            return json.load(file).get("currentContext") or "default"
    except (OSError, ValueError, AttributeError):
        return "default"


def _group_pending() -> bool:
    """The account is in group docker and this login is not: it began before the change."""
    try:
        group = grp.getgrnam("docker")
    except KeyError:
        return False
    user = pwd.getpwuid(os.geteuid()).pw_name
    return user in group.gr_mem and group.gr_gid not in {os.getegid(), *os.getgroups()}


if __name__ == "__main__":
    serve(main)
