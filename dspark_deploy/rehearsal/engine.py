"""A node's Docker engine: its images and containers, and what happens to them. engine_http.py speaks its API."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dspark_deploy.rehearsal.containers import (
    STOP_GRACE_S,
    Container,
    ContainerConfig,
    Place,
    rfc3339,
)
from dspark_deploy.rehearsal.execs import Exec, new_exec
from dspark_deploy.rehearsal.images import ImageStore
from dspark_deploy.rehearsal.root import CannotStart

VERSION, API_VERSION, OLDEST_API = "28.3.3", "1.51", "1.24"
LEAST_GRACE_S = 0.5  # of a stop, however fast time goes
QUIET_S = 0.5  # how often a listener may look whether anybody still reads


class EngineError(Exception):
    """The engine's no: an HTTP status and its words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a container."""

    at: int  # nanoseconds since the epoch
    action: str  # create, start, die, kill, stop, destroy
    container: Container


class Engine:
    """One node's engine. Any thread may call it."""

    def __init__(self, images: ImageStore, place: Place, time_scale: float) -> None:
        self.images = images
        self._place = place
        self._time_scale = time_scale
        self._containers: dict[str, Container] = {}
        self._execs: dict[str, Exec] = {}
        self._lock = threading.RLock()
        self._happened = threading.Condition()
        self._events: list[Event] = []

    def containers(self, labels: Mapping[str, str | None] | None = None) -> list[Container]:
        """Every container that carries all of `labels` (None: whatever the value), the newest first."""
        with self._lock:
            found = [
                each
                for each in self._containers.values()
                if all(_carries(each, name, value) for name, value in (labels or {}).items())
            ]
        return found[::-1]

    def container(self, name: str) -> Container:
        """By id, a unique beginning of it, or name. Raises EngineError."""
        with self._lock:
            for each in self._containers.values():
                if name in {each.id, each.config.name} or (name and each.id.startswith(name)):
                    return each
        raise EngineError(404, f"No such container: {name}")

    def create(self, config: ContainerConfig) -> Container:
        """A container that does not run yet. Raises EngineError for what the engine refuses."""
        with self._lock:
            image = self.images.find(config.reference)
            if image is None:
                raise EngineError(404, f"No such image: {config.reference}")
            self._refuse_taken(config.name)
            for mount in config.mounts:
                if not mount.source.exists():
                    why = f"bind source path does not exist: {mount.source}"
                    raise EngineError(400, f'invalid mount config for type "bind": {why}')
            container_id = secrets.token_hex(32)
            try:
                container = Container(container_id, config, image, self._place, lambda how: self._tell(how, container))
            except CannotStart as error:
                raise EngineError(400, str(error)) from error
            self._containers[container_id] = container
        self._tell("create", container)
        return container

    def start(self, container: Container) -> None:
        """Start it; running already is fine. Raises EngineError."""
        for device in container.config.devices:
            if not (self._place.node_root / device[1:]).exists():
                why = f'error gathering device information while adding custom device "{device}"'
                raise EngineError(500, f"{why}: no such file or directory")
        with self._lock:
            if container.running:
                return
            try:
                container.start()
            except CannotStart as error:
                raise EngineError(500, str(error)) from error

    def stop(self, container: Container, grace_s: float | None) -> bool:
        """Ask it to end and kill it after its grace, by the rehearsal's time. Whether it ran."""
        if not container.running:
            return False
        if grace_s is None:
            own = container.config.stop_grace_s
            grace_s = STOP_GRACE_S if own is None else own
        container.stop(max(grace_s / self._time_scale, LEAST_GRACE_S))
        self._tell("stop", container)
        return True

    def kill(self, container: Container) -> None:
        """End it at once. Raises EngineError where it does not run."""
        if not container.running:
            raise EngineError(409, f"cannot kill container: {container.id}: container {container.id} is not running")
        container.kill()
        self._tell("kill", container)

    def remove(self, container: Container, *, force: bool) -> None:
        """Forget it. Raises EngineError where it runs and `force` is not given."""
        if container.running and not force:
            raise EngineError(
                409, f'cannot remove container "/{container.config.name}": container is running: stop it first'
            )
        with self._lock:
            if self._containers.pop(container.id, None) is None:
                raise EngineError(404, f"No such container: {container.id}")
        container.remove()
        self._tell("destroy", container)

    def new_exec(self, container: Container, argv: Sequence[str]) -> Exec:
        """A command to run in a container. Raises EngineError where that does not run."""
        if not container.running:
            raise EngineError(409, f"Container {container.id} is not running")
        made = new_exec(container, tuple(argv))
        self._execs[made.id] = made
        return made

    def exec(self, name: str) -> Exec:
        """One that was made. Raises EngineError."""
        if name not in self._execs:
            raise EngineError(404, f"No such exec instance: {name}")
        return self._execs[name]

    def events(self, labels: Mapping[str, str | None]) -> Iterator[Event | None]:
        """What happens from now on to containers that carry all of `labels`; None now and then while nothing does."""
        with self._happened:
            seen = len(self._events)
        while True:
            with self._happened:
                if len(self._events) == seen:
                    self._happened.wait(QUIET_S)
                fresh = self._events[seen:]
                seen += len(fresh)
            told = [each for each in fresh if all(_carries(each.container, *label) for label in labels.items())]
            yield from told or (None,)

    def close(self) -> None:
        """End every container."""
        for container in self.containers():
            container.kill()

    def info(self) -> dict[str, Any]:
        """What `GET /info` answers."""
        return {
            "DockerRootDir": str(self._place.folder.parent),
            "Runtimes": {"runc": {}, **({"nvidia": {}} if self._place.has_gpu else {})},
            "SecurityOptions": ["name=seccomp,profile=builtin"],
            "ServerVersion": VERSION,
            "SystemTime": rfc3339(time.time_ns()),
        }

    def version(self) -> dict[str, Any]:
        """What `GET /version` answers."""
        return {
            "Platform": {"Name": "a stand-in of the dspark rehearsal"},
            "Version": VERSION,
            "ApiVersion": API_VERSION,
            "MinAPIVersion": OLDEST_API,
            "Os": "linux",
        }

    def _refuse_taken(self, name: str) -> None:
        for each in self._containers.values():
            if each.config.name == name:
                raise EngineError(
                    409, f'Conflict. The container name "/{name}" is already in use by container "{each.id}".'
                )

    def _tell(self, action: str, container: Container) -> None:
        with self._happened:
            self._events.append(Event(time.time_ns(), action, container))
            self._happened.notify_all()


def _carries(container: Container, name: str, value: str | None) -> bool:
    labels = container.config.labels
    return name in labels and value in {None, labels[name]}
