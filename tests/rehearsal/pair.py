"""The rehearsal as the tests use it: a pair of its own in a folder of its own, and a way to run the tool on it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.rehearsal.demand import spec_of
from dspark_deploy.rehearsal.places import Places
from dspark_deploy.rehearsal.scenarios import HEALTHY

from ..bed.docker_api import DockerApi
from ..bed.host import wait_until
from ..bed.run import Ran, run
from ..contract import NODES, NodeName, both, left
from ..warm import ToolRun, WarmTool

CHECKOUT = Path(__file__).parents[2]
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
    for place_left in folder.glob("dspark-*-*"):
        owner = place_left.name.split("-")[1]
        if owner.isdigit() and not lives(int(owner)):
            shutil.rmtree(place_left, ignore_errors=True)


def lives(pid: int) -> bool:
    """Whether there is such a process, whoever's it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def listens(port: int) -> bool:
    """Whether somebody does on loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


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
        self._served = False
        self._started: subprocess.Popen[bytes] | None = None

    def run(self, *words: str) -> Ran:
        """Run a command line of dspark as it stands."""
        return run([DSPARK, *words], env=self.environment, cwd=self.state)

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

    @cached_property
    def _tool(self) -> WarmTool:
        return WarmTool(self.environment)

    def begin(self, *words: str) -> ToolRun:
        """Begin a run of dspark in a process of its own, which is not started but forked."""
        return self._tool.start(*words, cwd=self.state, environment=self.environment)

    def begin_elsewhere(self, home: Path, *words: str) -> ToolRun:
        """Begin one as on a controller of its own: another home, the same pair."""
        home.mkdir(exist_ok=True)
        environment = {**self.environment, "HOME": str(home), "XDG_STATE_HOME": str(home)}
        words = (*words, "--inventory", str(self.folder / "inventory.yaml"))
        return self._tool.start(*words, cwd=home, environment=environment)

    def start(self) -> None:
        """Have it up by a background of the tests' own, whose nodes fork what they run, and remember what health is."""
        places = Places(self.folder)
        places.folder.mkdir(parents=True)
        spec_of(catalogue_of(Wish(directory=self.state, home=self.state)), HEALTHY, float(FAST)).write(places.spec)
        argv = (sys.executable, "-m", "tests.rehearsal.forking", str(places.folder))
        with places.log.open("wb") as log:
            background = subprocess.Popen(
                argv, env=self.environment, cwd=CHECKOUT, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(lambda: places.facts.exists() or background.poll() is not None, 30, "a pair")
        self._started = background
        for node in NODES:
            self._healthy_images[node] = self.api(node).tags()
            for number, image in enumerate(self._healthy_images[node].values()):
                self.api(node).tag(image, f"kept:{number}")  # so that it outlives its last tag
        self._listening = self._table.read_text()

    def stop(self) -> Ran:
        """End it."""
        ran = self.dspark("stop").check()
        if self._started is not None:
            self._started.wait(20)
        if "_tool" in vars(self):
            self._tool.close()
        return ran

    def serve(self) -> None:
        """Back to health, with agent-1m serving: by the ranks of a test before where these are still there."""
        if self._served and left(self) == both("running agent-1m"):
            self._heal()
            return
        self.reset()
        self.dspark("-q", "up", "-p", "agent-1m").check()
        self._served = True

    def reset(self) -> None:
        """Back to health and emptiness."""
        self._served = False
        self._heal()
        for node in NODES:
            for container in self.api(node).containers():
                self.api(node).remove(container.id)
            for name in (".local", "broken"):
                shutil.rmtree(self.home(node) / name, ignore_errors=True)

    def _heal(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._table.write_text(self._listening)
        for node in NODES:
            for reference, image in self._healthy_images[node].items():
                self.api(node).tag(image, reference)
            self.switch(node, {})

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
    def release(self) -> str:
        """The one whose rank is on the head."""
        (rank,) = self.api("head").containers()
        return rank.labels["dspark.release"]

    @property
    def background(self) -> int:
        """The background process."""
        return int(json.loads((self.folder / "pair.json").read_text())["pid"])

    @property
    def _table(self) -> Path:
        return self.folder / "head/root/proc/net/tcp"
