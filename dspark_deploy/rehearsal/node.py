"""One node of the pair: its sandbox on disk, and what listens for it."""

from __future__ import annotations

import json
import secrets
import shlex
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from pathlib import Path

import paramiko

from dspark_deploy.rehearsal import docker
from dspark_deploy.rehearsal.containers import Place
from dspark_deploy.rehearsal.engine import Engine
from dspark_deploy.rehearsal.engine_http import EngineServer
from dspark_deploy.rehearsal.images import Image, ImageStore
from dspark_deploy.rehearsal.machine import HEAD, WORKER, Identity, ip_addresses, write_machine
from dspark_deploy.rehearsal.spec import ModelSpec, NodeState, Spec
from dspark_deploy.rehearsal.sshd import USER, SshServer
from dspark_deploy.rehearsal.standin import snapshots

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
MASTER_PORT = 25000
FREE_PORTS = range(MASTER_PORT + 1, 32_768)  # Linux gives away those above, macOS those from 49152 on
SWITCHES = ".stub.json"  # where the stand-in engine reads its switches


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback ports that are the pair's own, chosen when it is made. The head has both."""

    api: int
    rendezvous: int


@dataclass(frozen=True, slots=True)
class Keys:
    """Throw-away keys: what the node shows, and what it lets in."""

    host: paramiko.PKey
    authorized: paramiko.PKey


class Node:
    """Running from its creation on. `folder` is absolute; the process stands in its parent."""

    def __init__(
        self,
        folder: Path,
        identity: Identity,
        state: NodeState,
        spec: Spec,
        images: Mapping[str, Image],
        ports: Ports,
        keys: Keys,
    ) -> None:
        self.identity = identity
        (self.ssh_port,) = free_ports(1)
        self._folder = folder
        self._state = state
        self._listeners: list[socket.socket] = []
        self._write_sandbox(spec, ports)
        self._engine = Engine(_store(images, state), self._place(ports), spec.time_scale)
        self._servers: list[EngineServer] = []
        if state.dockerd:
            self._serve_engine()
        self._sshd: SshServer | None = None
        if state.sshd:
            self._sshd = SshServer(keys.host, keys.authorized, folder / "home", self._environment(), _mapped)
            self.ssh_port = self._sshd.port

    def close(self) -> None:
        """End all that runs on it."""
        for listener in self._listeners:
            listener.close()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._engine.close()
        if self._sshd is not None:
            self._sshd.close()

    def _write_sandbox(self, spec: Spec, ports: Ports) -> None:
        taken = [getattr(ports, name) for name in self._state.listens]
        self._listeners = [socket.create_server(("127.0.0.1", port)) for port in taken]
        write_machine(self._folder / "root", self.identity, rdma=self._state.rdma, listening=taken)
        (self._folder / "home").mkdir()
        if self._state.hf_home:
            hf_home = self._folder / "home/.cache/huggingface"
            hf_home.mkdir(parents=True)
            if self._state.models:
                _write_models(hf_home, spec.models)
            switches = {"gid_index": self.identity.gid_index, "time_scale": spec.time_scale, **self._state.engine}
            (hf_home / SWITCHES).write_text(json.dumps(switches), encoding="utf-8")
        self._write_programs()

    def _write_programs(self) -> None:
        """What a login finds first on its PATH."""
        folder = self._folder / "bin"
        folder.mkdir()
        for program in resources.files("dspark_deploy.rehearsal").joinpath("bin").iterdir():
            _write_program(folder / program.name, program.read_text(encoding="utf-8"))
        words = (sys.executable, "-I", "-S", docker.__file__, str(self._folder))
        _write_program(folder / "docker", f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        _write_program(folder / "ip", f"#!/bin/sh\ncat <<'END'\n{ip_addresses(self.identity)}\nEND\n")

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self._folder / "home"),
            "USER": USER,
            "LOGNAME": USER,
            "SHELL": "/bin/sh",
            "PATH": f"{self._folder / 'bin'}:{SYSTEM_PATH}",
            "DSPARK_NODE_ROOT": str(self._folder / "root"),
            "DSPARK_NODE_ADDRESSES": json.dumps(_stand_ins()),
        }

    def _place(self, ports: Ports) -> Place:
        local = {name: str(address.ip) for name, address in self.identity.addresses.items()}
        # Also at an inventory's own default, for one that `init` has written.
        meeting = [f"{HEAD.fabric_address}:{port}" for port in (ports.rendezvous, MASTER_PORT)]
        address_map = {"local": local, "endpoints": dict.fromkeys(meeting, f"127.0.0.1:{ports.rendezvous}")}
        return Place(
            folder=self._folder / "containers",
            node_root=self._folder / "root",
            standin={"DSPARK_STANDIN_ADDRESS_MAP": json.dumps(address_map)},
            has_gpu=self._state.gpu,
        )

    def _serve_engine(self) -> None:
        server = EngineServer(f"{self._folder.name}/{docker.SOCKET}", self._engine)
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()


def _stand_ins() -> dict[str, tuple[str, int]]:
    """Each node's addresses -> what stands for them: loopback, and another port, since both are this machine."""
    return {
        str(each.ip): ("127.0.0.1", identity.number)
        for identity in (HEAD, WORKER)
        for each in identity.addresses.values()
    }


def _mapped(address: str, port: int) -> tuple[str, int]:
    """The nodes' own addresses exist on no interface of this machine: the same port on loopback stands for each."""
    return ("127.0.0.1", port) if address in _stand_ins() else (address, port)


def _store(images: Mapping[str, Image], state: NodeState) -> ImageStore:
    if state.images == "none":
        return ImageStore({})
    if state.images == "swapped":
        others = {image.family: image for image in images.values()}
        return ImageStore(
            {
                tag: next(other for family, other in others.items() if family != image.family)
                for tag, image in images.items()
            }
        )
    return ImageStore(images)


def _write_models(hf_home: Path, models: tuple[ModelSpec, ...]) -> None:
    for model in models:
        if model.revision is None:
            snapshots.write_directory(hf_home / model.name, model.name)
        else:
            snapshots.write_snapshot(hf_home / "hub", model.name, model.revision, encoder=model.encoder)


def _write_program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody has now. One may be taken a moment later; only a start would notice.

    Of those that no system gives to whoever asks for any: one of these would soon be somebody's connection.
    """
    found: list[int] = []
    first = secrets.randbelow(len(FREE_PORTS))
    for port in chain(FREE_PORTS[first:], FREE_PORTS[:first]):
        if len(found) == count:
            break
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    return found
