"""Nodes in memory: hosts and engines with recorded commands, containers that live and die, and a small file system.

`FakeHost(facts)` is a node that looks as `facts` say (see samples.py). `docker compose … up` in the folder of a kept
release starts a container with that release's labels; `host.on_start` then makes it print, die or serve. `host.api`
answers what is asked of the served API, through a real HTTP client.
"""

from __future__ import annotations

import io
import json
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import PurePosixPath
from typing import Any

from pydantic import SecretStr

from dspark_deploy.checks.layout import layout_of
from dspark_deploy.errors import DsparkError, StepFailed
from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container, Memory, NodeFacts, Noted
from dspark_deploy.facts.parse import SCHEMA, parse_look
from dspark_deploy.remote.host import EngineEvent, LogLine, Result, Stream
from tests.plan.deployments import CATALOGUE
from tests.samples import cache_place, memory, snapshot_document

Answerer = Callable[
    [str, str, Any], tuple[int, Any]
]  # method, path, JSON body -> status (0: never answers), JSON document or text


class FakeEngine:
    """host.Engine without a daemon. The containers are `kept`, by id."""

    def __init__(self, node: str, images: Mapping[str, str] | None = None) -> None:
        self.node = node
        self.images = dict(images or {})  # reference -> id
        self.kept: dict[str, Container] = {}
        self.stopped: list[str] = []  # ids, in order
        self.died: list[EngineEvent] = []  # what listeners are told
        self.unstoppable: set[str] = set()  # ids that survive a stop
        self.failing: DsparkError | None = None  # raised by every question while it is set
        self.skew_s = 0.0  # its clock less this machine's
        self._lines: dict[str, list[LogLine]] = {}
        self._changed = threading.Condition()
        self._seconds = 0

    # --- what a test makes happen -------------------------------------------------------------------------------

    def add(self, container: Container, *texts: str) -> Container:
        """Have a container, with lines it has printed."""
        with self._changed:
            self.kept[container.id] = container
            self._lines.setdefault(container.id, [])
        self.say(container.id, *texts)
        return container

    def say(self, container_id: str, *texts: str) -> None:
        """Have a container print lines, a second apart."""
        with self._changed:
            for text in texts:
                self._seconds += 1
                minutes, seconds = divmod(self._seconds, 60)
                self._lines[container_id].append(LogLine(f"2026-09-01T10:{minutes:02}:{seconds:02}.000000000Z", text))
            self._changed.notify_all()

    def die(self, container_id: str, exit_code: int = 1, *last_words: str, oom_killed: bool = False) -> None:
        """End a container by itself."""
        self.say(container_id, *last_words)
        self.died.append(EngineEvent(0.0, "die", container_id, self.kept[container_id].name, exit_code))
        self._change(container_id, state="exited", exit_code=exit_code, oom_killed=oom_killed)

    def restart(self, container_id: str) -> None:
        """Have the engine restart a container."""
        self._change(container_id, restarts=self.kept[container_id].restarts + 1)

    def vanish(self, container_id: str) -> None:
        """Somebody else removes a container."""
        with self._changed:
            del self.kept[container_id]
            self._changed.notify_all()

    def _change(self, container_id: str, **changes: Any) -> None:
        with self._changed:
            self.kept[container_id] = replace(self.kept[container_id], **changes)
            self._changed.notify_all()

    # --- host.Engine --------------------------------------------------------------------------------------------

    def containers(self, pair: str) -> tuple[Container, ...]:
        self._ask()
        return tuple(each for each in self.kept.values() if each.labels.get(labels.PAIR) == pair)

    def inspect(self, container_id: str) -> Container | None:
        self._ask()
        return self.kept.get(container_id)

    def stop(self, container: Container) -> None:
        self._ask()
        self.stopped.append(container.id)
        if container.id in self.unstoppable:
            raise StepFailed(f"{self.node}: docker could not stop {container.name}", remedy="…", node=self.node)
        if container.id in self.kept:
            self.vanish(container.id)

    def logs(
        self, container_id: str, *, follow: bool = False, since_s: float | None = None, tail: int | None = None
    ) -> FakeLogs:
        self._ask()
        del since_s  # a fake has no clock to count from
        return FakeLogs(self, container_id, follow=follow, tail=tail)

    def events(self, pair: str) -> FakeEvents:
        self._ask()
        return FakeEvents(self, pair)

    def image_id(self, reference: str) -> str | None:
        self._ask()
        return self.images.get(reference)

    def time_s(self) -> float:
        self._ask()
        return time.time() + self.skew_s

    def _ask(self) -> None:
        if self.failing is not None:
            raise self.failing


class FakeLogs:
    """host.Logs over what a fake engine's container prints."""

    def __init__(self, engine: FakeEngine, container_id: str, *, follow: bool, tail: int | None) -> None:
        self._engine = engine
        self._id = container_id
        self._follow = follow
        total = len(engine._lines[container_id])
        self._next = 0 if tail is None else max(total - tail, 0)
        self._closed = False

    def __iter__(self) -> Iterator[LogLine]:
        return self

    def __next__(self) -> LogLine:
        lines = self._engine._lines[self._id]
        with self._engine._changed:
            self._engine._changed.wait_for(lambda: self._next < len(lines) or self._over())
            if self._closed or self._next >= len(lines):
                raise StopIteration
            self._next += 1
            return lines[self._next - 1]

    def close(self) -> None:
        with self._engine._changed:
            self._closed = True
            self._engine._changed.notify_all()

    def _over(self) -> bool:
        container = self._engine.kept.get(self._id)
        return self._closed or not self._follow or container is None or container.state != "running"


class FakeEvents:
    """host.Events over what happens to a fake engine's containers: their deaths. Ends where the engine fails."""

    def __init__(self, engine: FakeEngine, pair: str) -> None:
        self._engine = engine
        self._next = len(engine.died)
        self._closed = False
        del pair  # a fake keeps no other pair's containers

    def __iter__(self) -> Iterator[EngineEvent]:
        return self

    def __next__(self) -> EngineEvent:
        engine = self._engine
        with engine._changed:
            engine._changed.wait_for(lambda: self._next < len(engine.died) or self._closed or engine.failing)
            if self._closed or self._next >= len(engine.died):
                raise StopIteration
            self._next += 1
            return engine.died[self._next - 1]

    def close(self) -> None:
        with self._engine._changed:
            self._closed = True
            self._engine._changed.notify_all()


@dataclass
class FakeSession:
    """host.Session of the lock program."""

    host: FakeHost
    answer: dict[str, Any]
    beats: int = 0
    closed: bool = False

    def receive(self, *, timeout_s: float) -> dict[str, Any]:
        del timeout_s
        return self.answer

    def beat(self) -> None:
        self.beats += 1

    def close(self) -> None:
        self.closed = True
        if self.answer["locked"]:
            self.host.lock_owner = None


@dataclass
class FakeHost:
    """host.Host without a node. Everything done to it is in `done`, in order, as (what, detail)."""

    facts: NodeFacts
    engine_: FakeEngine = field(init=False)
    files: dict[PurePosixPath, bytes] = field(default_factory=dict)  # absolute path -> content
    done: list[tuple[str, Any]] = field(default_factory=list)
    results: dict[tuple[str, ...], Result] = field(default_factory=dict)  # first words of a command -> its end
    failing: dict[str, DsparkError] = field(default_factory=dict)  # `run`, `probe`, `receive`, `lock` -> its error
    places: list[dict[str, Any]] = field(default_factory=list)  # its caches; empty: one, with the default model
    snapshot: dict[str, Any] = field(default_factory=dict)  # in what its model's snapshot is not a complete one
    layout: str = "anemll"  # the family whose files its images hold
    recalls: dict[str, Any] = field(default_factory=dict)  # in what it remembers more than nothing
    hears: dict[str, Any] = field(default_factory=dict)  # in what it hears of its peer is not all of it
    memories: list[Memory] = field(default_factory=lambda: [memory()])  # one a question, the last one stays
    pulses: list[dict[str, Any]] = field(default_factory=lambda: [pulse()])  # one a question, the last one stays
    lock_owner: dict[str, Any] | None = None
    history: list[dict[str, Any]] = field(default_factory=list)  # what runs noted here, oldest first
    marks: dict[str, Any] = field(default_factory=dict)
    sessions: list[FakeSession] = field(default_factory=list)
    on_start: Callable[[FakeHost, Container], None] = lambda _host, _container: None
    api: Answerer | None = None  # None: nothing listens
    api_key: SecretStr | None = None
    held_key: SecretStr | None = None  # what its secrets.env holds
    held_since_s: float = 0.0  # when that was written
    closed: bool = False

    def __post_init__(self) -> None:
        images = {image.reference: image.id for image in self.facts.images}
        self.engine_ = FakeEngine(self.name, images)
        for container in self.facts.containers:
            self.engine_.add(container)

    @property
    def name(self) -> str:
        return self.facts.node

    @property
    def where(self) -> str:
        return f"{self.name} ({self.facts.user}@{self.address})"

    @property
    def address(self) -> str:
        return {"head": "10.77.0.1", "worker": "10.77.0.2"}[self.name]

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """Every command that was run, in order."""
        return [detail for what, detail in self.done if what == "run"]

    def run(self, argv: Sequence[str], *, timeout_s: float, cwd: str | None = None) -> Result:
        del timeout_s
        command = tuple(argv)
        self._do("run", command)
        for words, result in self.results.items():
            if command[: len(words)] == words:
                return replace(result, argv=command)
        folder = self.facts.home / (cwd or "")
        if command[:2] == ("docker", "compose") and "up" in command:
            return self._compose_up(command, folder)
        if command[0] == "cat":
            content = self.files.get(self.facts.home / command[1])
            return Result(command, 1 if content is None else 0, (content or b"").decode(), "")
        raise AssertionError(f"{self.name}: a fake does not know {' '.join(command)}")

    def call(
        self, program: str, request: Mapping[str, Any], *, timeout_s: float, payload: bytes = b""
    ) -> dict[str, Any]:
        del timeout_s
        self._do(program, dict(request))
        answers: dict[str, Callable[[], dict[str, Any]]] = {
            "probe": lambda: self._probe(request),
            "receive": lambda: self._receive(request, payload),
            "verify_cache": lambda: snapshot_document(request, **self.snapshot),
            "look": lambda: self._look(request),
            "link": lambda: self._link(request),
            "places": lambda: {"places": self.places or [cache_place(self.facts)]},
            "remember": lambda: self._remember(request),
            "journal": lambda: self._journal(request),
            "read_release": lambda: {"files": self._release(request)},
            "secret": lambda: self._secret(request),
            "pulse": lambda: self.pulses.pop(0) if len(self.pulses) > 1 else self.pulses[0],
            "recall": lambda: {"noted": None, "hashed": [], "gpu": None, **self.recalls},
            "memory": lambda: asdict(self.memories.pop(0) if len(self.memories) > 1 else self.memories[0]),
        }
        if program not in answers:
            raise AssertionError(f"{self.name}: a fake does not know the program {program}")
        return answers[program]()

    def start(self, program: str, request: Mapping[str, Any], *, timeout_s: float) -> FakeSession:
        del timeout_s
        assert program == "lock"
        self._do(program, dict(request))
        free = self.lock_owner is None
        session = FakeSession(self, {"locked": True} if free else {"locked": False, "owner": self.lock_owner})
        if free:
            self.lock_owner = dict(request["owner"])
        self.sessions.append(session)
        return session

    def engine(self) -> FakeEngine:
        return self.engine_

    def dial(self, address: str, port: int, *, timeout_s: float) -> Stream:
        if self.api is None:
            raise ConnectionRefusedError(f"{address} port {port} on the {self.name}: connection refused")
        ours, theirs = socket.socketpair()
        ours.settimeout(timeout_s)
        threading.Thread(target=serve_connection, args=(theirs, self.api), daemon=True).start()
        return ours

    def close(self) -> None:
        self.closed = True

    def release_folder(self, pair: str, release: str) -> PurePosixPath:
        """Where the node keeps a release."""
        return self.facts.home / ".local/share/dspark" / pair / "releases" / release

    def keep(self, pair: str, release: str, files: Mapping[str, bytes]) -> None:
        """Have the node keep a release."""
        self.files.update({self.release_folder(pair, release) / name: content for name, content in files.items()})

    def kept_releases(self, pair: str) -> list[str]:
        """The releases that the node keeps."""
        folder = self.release_folder(pair, "x").parent
        return sorted({path.relative_to(folder).parts[0] for path in self.files if path.is_relative_to(folder)})

    def _do(self, what: str, detail: Any) -> None:
        self.done.append((what, detail))
        if what in self.failing:
            raise self.failing[what]

    def _probe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The facts as a probe would send them, with what has changed on the node since."""
        unlooked = None
        if "look" in request and self.facts.images and not self.facts.looks:
            unlooked = self.failing.get("look")
            if unlooked is None:
                self._look({"image": self.facts.images[0].id, **request["look"]})
        document: dict[str, Any] = json.loads(json.dumps(asdict(self.facts), default=str))
        document["schema"] = SCHEMA
        if unlooked is not None:
            document["missing"]["look"] = unlooked.message
        document["time_s"] = time.time() + document.pop("skew_s")
        document["releases"] = sorted({*self.facts.releases, *self.kept_releases(request["pair"])})
        document["key_at"] = None if self.held_key is None else self.held_since_s
        document["marks"] = sorted({*self.facts.marks, *self.marks})
        document["images"] = [each for each in document["images"] if each["reference"] in request["images"]]
        document["containers"] = [_inspected(each) for each in self.engine_.kept.values()]
        del document["node"]
        return document

    def _release(self, request: Mapping[str, Any]) -> dict[str, str] | None:
        folder = self.release_folder(request["pair"], request["release"])
        found = {path.name: content.decode() for path, content in self.files.items() if path.parent == folder}
        return found or None

    def _journal(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request.get("append"):
            self.history.append(request["append"])
        for name, mark in (request.get("set") or {}).items():
            self.marks.pop(name, None)
            if mark is not None:
                self.marks[name] = mark
        manifests = {
            release: json.loads(self.files[self.release_folder(request["pair"], release) / "manifest.json"])
            for release in self.kept_releases(request["pair"])
        }
        releases = {release: manifest["served"] for release, manifest in manifests.items()}
        return {"history": list(self.history), "marks": dict(self.marks), "releases": releases}

    def _secret(self, request: Mapping[str, Any]) -> dict[str, Any]:
        before = None if self.held_key is None else self.held_key.get_secret_value()
        same = before == request["key"]
        if request["change"] and not same:
            self.held_key = None if request["key"] is None else SecretStr(request["key"])
            self.held_since_s = time.time()
        changed = {"before": before} if request["change"] else {}
        return {"same": same, "at": None if self.held_key is None else self.held_since_s, **changed}

    def _link(self, request: Mapping[str, Any]) -> dict[str, Any]:
        heard = {"small": True, "full": True, "problem": "", **self.hears}
        ends = [{name: end[name] for name in ("interface", "address", "peer", "size")} for end in request["links"]]
        return {"links": [{**end, **heard} for end in ends]}

    def _remember(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.facts = replace(self.facts, noted=Noted(request["at"], dict(request["values"])))
        return {}

    def _look(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What an image of `layout` holds; the node keeps it."""
        family = CATALOGUE.family(self.layout)
        present = [path for path in request["paths"] if path in layout_of(family)]
        names = {path: [*family.registered, *family.baked_in] for path in present if path in request["names_in"]}
        absent = [path for path in request["paths"] if path not in present]
        document = {"image_id": request["image"], "present": present, "absent": absent, "names": names}
        self.facts = replace(self.facts, looks=(parse_look(document),))
        return document

    def _receive(self, request: Mapping[str, Any], payload: bytes) -> dict[str, Any]:
        with tarfile.open(fileobj=io.BytesIO(payload)) as archive:
            contents = {member.name: _read(archive, member) for member in archive}
        assert {name: sha256(content).hexdigest() for name, content in contents.items()} == request["files"]
        self.keep(request["pair"], request["release"], contents)
        return {"changed": True, "removed": []}

    def _compose_up(self, command: tuple[str, ...], folder: PurePosixPath) -> Result:
        manifest = json.loads(self.files[folder / "manifest.json"])
        served = manifest["served"]
        marks = {
            labels.PAIR: served["pair"],
            labels.RANK: str(manifest["rank"]),
            labels.NODE: manifest["node"],
            labels.RELEASE: manifest["release"],
            labels.PROFILE: served["profile"],
            labels.FAMILY: served["family"],
            labels.TOOL: manifest["tool"],
        }
        if served["image"] not in self.engine_.images:
            return Result(command, 1, "", f"Error response from daemon: No such image: {served['image']}\n")
        started = Container(
            id=f"{self.name}-{len(self.done)}",
            name=f"{served['pair']}-vllm-1",
            state="running",
            image_id=self.engine_.images[served["image"]],
            labels=marks,
            started_at="2026-09-01T10:00:00.000000000Z",
        )
        self.engine_.add(started)
        self.on_start(self, started)
        return Result(command, 0, "", "")


def pulse(
    cpu_s: float = 0.0, *compilers: str, unread: Mapping[str, str] | None = None, **caches: int
) -> dict[str, Any]:
    """What the program of that name answers. `caches` are bytes, by folder."""
    processes = [{"pid": 1, "command": "vllm", "cpu_s": cpu_s}]
    processes += [{"pid": 2, "command": each, "cpu_s": 0.0} for each in compilers]
    sizes = {folder: {"bytes": size, "files": 1} for folder, size in caches.items()}
    return {"processes": processes, "caches": sizes, "unread": dict(unread or {})}


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = archive.extractfile(member)
    assert content is not None
    return content.read()


def _inspected(container: Container) -> dict[str, Any]:
    """A container in the engine's own shape."""
    granted = container.granted
    utilization = container.gpu_memory_utilization
    return {
        "Id": container.id,
        "Name": f"/{container.name}",
        "Image": container.image_id,
        "RestartCount": container.restarts,
        "State": {
            "Status": container.state,
            "Running": container.state == "running",
            "StartedAt": container.started_at,
            "ExitCode": container.exit_code or 0,
            "OOMKilled": container.oom_killed,
        },
        "Config": {
            "Labels": dict(container.labels),
            "StopTimeout": container.stop_timeout_s,
            "Cmd": [] if utilization is None else ["--gpu-memory-utilization", str(utilization)],
        },
        "HostConfig": granted
        and {
            "Ulimits": [{"Name": "memlock", "Soft": granted.memlock_bytes, "Hard": granted.memlock_bytes}],
            "Devices": [{"PathInContainer": device} for device in granted.devices],
            "DeviceRequests": [{"Driver": "nvidia"}] if granted.gpu else None,
        },
        "Mounts": [{"Destination": target} for target in granted.mounts] if granted else [],
    }


def serve_connection(connection: socket.socket, answerer: Answerer) -> None:
    """Answer HTTP requests on one connection until its other side closes it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = answerer(self.command, self.path, json.loads(body) if body else None)
            if not status:
                self.rfile.read()  # never answers
                return
            content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815  the names that the standard library calls

        def log_message(self, *_: Any) -> None:
            """A test's output is its own."""

    with connection:
        try:
            Handler(connection, ("fake", 0), None)  # type: ignore[arg-type]  # a handler alone, without a server
        except ConnectionError:
            return
