"""The rehearsal as the tests use it: a pair of its own in a folder of its own, and a way to run the tool on it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main

from ..bed.docker_api import DockerApi
from ..bed.run import Ran, run
from ..contract import NODES, NodeName

DSPARK = Path(sys.executable).with_name("dspark")
FAST = "10000"  # a time scale at which a boot takes no time
DROPPED = ("DSPARK_", "SSH_", "XDG_", "DOCKER_", "COMPOSE_", "HF_", "VLLM_", "PYTEST_", "NO_COLOR", "COLUMNS")


def place() -> Path:
    """A new folder for a pair's state: a short path, since a unix socket's is limited, in memory where that can be.

    A pair is a thousand small files, which a disk makes ten times as slowly. What a killed run left is cleared away.
    """
    memory = Path("/dev/shm")
    folder = memory if memory.is_dir() else Path(tempfile.gettempdir())
    clear_left_over(folder)
    return Path(tempfile.mkdtemp(prefix=f"dspark-{os.getpid()}-", dir=folder))


def clear_left_over(folder: Path) -> None:
    """Remove the places of processes that are gone. A pair in one ends by itself: it looks for its files."""
    for left in folder.glob("dspark-*-*"):
        owner = left.name.split("-")[1]
        if owner.isdigit() and not lives(int(owner)):
            shutil.rmtree(left, ignore_errors=True)


def lives(pid: int) -> bool:
    """Whether there is such a process, whoever's it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class RehearsedPair:
    """A pair below `state`. See contract.Side."""

    pair = "rehearsal"

    def __init__(self, state: Path) -> None:
        self.state = state
        self.folder = state / "dspark" / "rehearsal"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
        self.environment = {**kept, "HOME": str(state), "XDG_STATE_HOME": str(state), "LANG": "C.UTF-8"}
        self._healthy_images: dict[NodeName, dict[str, str]] = {}
        self._listeners: list[socket.socket] = []
        self._listening = ""

    def run(self, *words: str, env: Mapping[str, str] | None = None, timeout: float = 60) -> Ran:
        """Run a command line of dspark as it stands."""
        return run([DSPARK, *words], env={**self.environment, **(env or {})}, cwd=self.state, timeout=timeout)

    def dspark(self, *words: str) -> Ran:
        """See Side. In this process: it would take half a second to start another one."""
        return self.called("rehearse", *words)

    def called(self, *words: str) -> Ran:
        """What `run` does, in this process."""
        register_all()
        out, err, began = io.StringIO(), io.StringIO(), time.monotonic()
        with (
            mock.patch.dict(os.environ, self.environment, clear=True),
            contextlib.chdir(self.state),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(list(words))
        return Ran(words, code, out.getvalue(), err.getvalue(), time.monotonic() - began)

    def start(self) -> None:
        """Have it up, and remember what health is."""
        self.dspark("--time-scale", FAST, "status", "-q")
        for node in NODES:
            self._healthy_images[node] = self.api(node).tags()
            for number, image in enumerate(self._healthy_images[node].values()):
                self.api(node).tag(image, f"kept:{number}")  # so that it outlives its last tag
        self._listening = self._table.read_text()

    def stop(self) -> Ran:
        """End it."""
        return self.dspark("stop").check()

    def reset(self) -> None:
        """Back to health and emptiness."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._table.write_text(self._listening)
        for node in NODES:
            for container in self.api(node).containers():
                self.api(node).remove(container.id)
            for reference, image in self._healthy_images[node].items():
                self.api(node).tag(image, reference)
            self.switch(node, {})
            for name in (".local", "broken"):
                shutil.rmtree(self.home(node) / name, ignore_errors=True)

    def home(self, node: NodeName) -> Path:
        """The login's home."""
        return self.folder / node / "home"

    def api(self, node: NodeName) -> DockerApi:
        """See Side."""
        return DockerApi(self.folder / node / "engine.sock")

    def login(self, node: NodeName, script: str) -> Ran:
        """See Side. The environment is the one that the node's SSH server gives."""
        folder = self.folder / node
        path = f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        return run(["sh", "-c", script], env={"HOME": str(self.home(node)), "PATH": path}, cwd=self.home(node))

    def switch(self, node: NodeName, switches: Mapping[str, Any]) -> None:
        """See Side."""
        document = {"gid_index": 3 if node == "head" else 5, "time_scale": float(FAST), **switches}
        (self.home(node) / ".cache/huggingface/.stub.json").write_text(json.dumps(document))

    def occupy(self, node: NodeName, port: Literal["api", "rendezvous"]) -> None:
        """See Side."""
        number = self.ports[port]
        self._listeners.append(socket.create_server(("127.0.0.1", number)))
        row = f"   0: 00000000:{number:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 0\n"
        (self.folder / node / "root/proc/net/tcp").write_text(self._listening + row)

    @property
    def ports(self) -> dict[str, int]:
        """The pair's own ports, by the inventory's word."""
        lines = (self.folder / "inventory.yaml").read_text().splitlines()
        api = next(line for line in lines if line.startswith("api:"))
        rendezvous = next(line for line in lines if line.startswith("master_port:"))
        return {"api": int(api.rpartition("port:")[2].strip(" }")), "rendezvous": int(rendezvous.partition(":")[2])}

    @property
    def background(self) -> int:
        """The background process."""
        return int(json.loads((self.folder / "pair.json").read_text())["pid"])

    @property
    def _table(self) -> Path:
        return self.folder / "head/root/proc/net/tcp"
