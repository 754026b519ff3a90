"""A container as a plain process of this machine.

What is as in a real one: the process is the image's entrypoint with its arguments, so the rendered `serve.sh` and
`prepare.py` run for real, on a private copy of the image's files; the environment is the image's with the compose
file's over it, and nothing of this machine's; mounts and devices show at their places; the main process gets the
signals, all of its group is killed with it; its output is its log.

What is not: its root is a folder that nothing changes into (root.py). `/bin`, the interpreter, processes, users and
network are this machine's; a read-only mount can be written to; limits, ipc, shared memory, capabilities and restart
policies are kept and not carried out.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dspark_deploy.rehearsal.containerlog import ContainerLog
from dspark_deploy.rehearsal.images import Image
from dspark_deploy.rehearsal.root import CannotStart, Mount, Root

NEVER = "0001-01-01T00:00:00Z"
STOP_GRACE_S = 10  # the engine's own, where a container has none
READ_SIZE = 65536
DRAIN_S = 1.0  # for the output of a process that ended
KILLED = 128


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """What a container is created with. `host` is what the engine only keeps and shows, under its own names."""

    name: str
    reference: str  # the image as it was asked for
    labels: Mapping[str, str]
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...] = ()
    devices: tuple[str, ...] = ()
    gpu: bool = False
    stop_grace_s: int | None = None
    host: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """What a node gives its containers."""

    folder: Path  # of all containers
    node_root: Path  # stands for / of the node: devices
    standin: Mapping[str, str]  # DSPARK_STANDIN_* of the node
    has_gpu: bool


class Container:
    """One container, from its creation to its removal. Creating it makes its root; may raise CannotStart."""

    def __init__(
        self, container_id: str, config: ContainerConfig, image: Image, place: Place, changed: Callable[[str], None]
    ) -> None:
        self.id = container_id
        self.config = config
        self.image = image
        self.created_ns = time.time_ns()
        self.status = "created"
        self.exit_code = 0
        self.started_at = self.finished_at = NEVER
        self._place = place
        self._changed = changed  # told "start", "die"
        self._folder = place.folder / container_id
        devices = [Mount(place.node_root / device[1:], device) for device in config.devices]
        self._root = Root(self._folder / "root", image, [*config.mounts, *devices])
        self.log = ContainerLog(self._folder / "json.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()
        self._ended.set()

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self.status == "running"

    @property
    def pid(self) -> int:
        """Of its main process; 0 where none runs."""
        return self._process.pid if self._process is not None and self.running else 0

    def file(self, path: str) -> Path | None:
        """A file or folder of the container by its path in it; None where there is none."""
        found = self._root.folder / path.lstrip("/")
        return found if found.exists() else None

    def start(self) -> None:
        """Start its process. Raises CannotStart."""
        place, config = self._place, self.config
        if config.gpu and not place.has_gpu:
            raise CannotStart('could not select device driver "nvidia" with capabilities: [[gpu]]')
        root = self._root
        reader, writer = os.pipe()  # its end is the container's end, whatever becomes of us
        try:
            argv = [root.runnable(word) for word in config.entrypoint] + list(config.command)
            self._process = process = subprocess.Popen(
                argv,
                env=self._environment(reader),
                cwd=root.folder / "workspace",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(reader,),
                start_new_session=True,
            )
        except OSError as error:
            os.close(writer)
            raise CannotStart(
                f'failed to create task for container: exec: "{config.entrypoint[0]}": {error.strerror}'
            ) from error
        finally:
            os.close(reader)
        self.status, self.started_at = "running", _now()
        self._ended.clear()
        self.log.begin()
        threading.Thread(target=self._watch, args=(process, writer), daemon=True).start()
        self._changed("start")

    def stop(self, grace_s: float) -> None:
        """Ask the main process to end, then kill all of it."""
        if not self.running:
            return
        self._signal(signal.SIGTERM)
        if not self._ended.wait(grace_s):
            self.kill()

    def kill(self) -> None:
        """End it at once, and see it ended."""
        if self._process is not None and self.running:
            _kill_group(self._process.pid)
        self._ended.wait()

    def execute(self, argv: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run a command beside the main process. Exit code, output, errors; raises OSError where there is none."""
        root = self._root
        environment = {name: root.inside(value) for name, value in self._declared().items()}
        ended = subprocess.run(
            [root.inside(word) for word in argv],
            env=environment,
            cwd=root.folder / "workspace",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        out, err = (root.outside(data.decode(errors="replace")).encode() for data in (ended.stdout, ended.stderr))
        return ended.returncode, out, err

    def processes(self) -> list[list[str]]:
        """Each of its processes: pid, CPU time, command. All are of the main one's group."""
        listed = subprocess.run(
            ["ps", "-A", "-o", "pgid=,pid=,time=,comm="], check=True, capture_output=True, text=True
        )
        rows = (line.split(maxsplit=3) for line in listed.stdout.splitlines())
        return [row[1:] for row in rows if row[0] == str(self.pid)]

    def remove(self) -> None:
        """End it and forget its files."""
        self.kill()
        self.log.close()
        shutil.rmtree(self._folder)

    def document(self) -> dict[str, Any]:
        """What `GET /containers/ID/json` answers."""
        config, image = self.config, self.image
        path, *arguments = (*config.entrypoint, *config.command)
        return {
            "Id": self.id,
            "Name": f"/{config.name}",
            "Created": rfc3339(self.created_ns),
            "Path": path,
            "Args": arguments,
            "Image": image.id,
            "RestartCount": 0,
            "State": self._state(),
            "Config": {
                "Image": config.reference,
                "Env": [f"{name}={value}" for name, value in self._declared().items()],
                "Entrypoint": list(config.entrypoint),
                "Cmd": list(config.command),
                "WorkingDir": image.config["WorkingDir"],
                "User": image.config["User"],
                "Labels": {**image.config["Labels"], **config.labels},
                "StopTimeout": config.stop_grace_s,
            },
            "HostConfig": dict(config.host),
            "Mounts": [
                {"Type": "bind", "Source": str(each.source), "Destination": each.target, "RW": not each.read_only}
                for each in config.mounts
            ],
        }

    def _state(self) -> dict[str, Any]:
        return {
            "Status": self.status,
            "Running": self.running,
            "Paused": False,
            "Restarting": False,
            "OOMKilled": False,
            "Dead": False,
            "Pid": self.pid,
            "ExitCode": self.exit_code,
            "Error": "",
            "StartedAt": self.started_at,
            "FinishedAt": self.finished_at,
        }

    def _declared(self) -> dict[str, str]:
        """The environment as it was written: the image's, and the compose file's over it."""
        return {**dict(entry.split("=", 1) for entry in self.image.config["Env"]), **self.config.environment}

    def _environment(self, parent: int) -> dict[str, str]:
        folder = str(self._root.folder)
        declared = {name: self._root.inside(value) for name, value in self._declared().items()}
        gpu = {"NVIDIA_VISIBLE_DEVICES": "all"} if self.config.gpu else {}  # as the engine's nvidia driver adds it
        own = {"DSPARK_STANDIN_ROOT": folder, "DSPARK_STANDIN_PARENT_FD": str(parent)}
        return {"HOME": folder, **declared, **gpu, **self._place.standin, **own}

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _watch(self, process: subprocess.Popen[bytes], parent: int) -> None:
        pump = threading.Thread(target=self._pump, args=(process,), daemon=True)
        pump.start()
        code = process.wait()
        _kill_group(process.pid)  # what it started ends with it, as in a namespace of its own
        pump.join(DRAIN_S)
        os.close(parent)
        self.exit_code = code if code >= 0 else KILLED - code
        self.status, self.finished_at = "exited", _now()
        self.log.end()
        self._ended.set()
        self._changed("die")

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        """Both streams in one thread, so that lines stand in the order in which they were printed."""
        pipes = {"stdout": process.stdout, "stderr": process.stderr}
        begun = dict.fromkeys(pipes, b"")
        with selectors.DefaultSelector() as waiting:
            for name, pipe in pipes.items():
                if pipe is not None:
                    waiting.register(pipe, selectors.EVENT_READ, name)
            while waiting.get_map():
                # Of two that are ready, standard output first: the last words of a program go to the other one.
                for key, _ in sorted(waiting.select(), key=lambda ready: ready[0].data, reverse=True):
                    data = os.read(key.fd, READ_SIZE)
                    *lines, begun[key.data] = (begun[key.data] + data).split(b"\n")
                    for line in lines:
                        self._print(key.data, line + b"\n")
                    if not data:
                        self._print(key.data, begun[key.data])
                        waiting.unregister(key.fileobj)
        for pipe in pipes.values():
            if pipe is not None:
                pipe.close()

    def _print(self, stream: str, line: bytes) -> None:
        if line:
            self.log.append(stream, self._root.outside(line.decode(errors="replace")))


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a group of dead processes
        os.killpg(leader, signal.SIGKILL)


def _now() -> str:
    """RFC 3339 with nanoseconds, as the engine writes times."""
    return rfc3339(time.time_ns())


def rfc3339(nanoseconds: int) -> str:
    """A time since the epoch as the engine writes it."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
