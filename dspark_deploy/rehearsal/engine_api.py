"""The Docker Engine API, as far as the tool and its tests use it: a request in, an answer out."""

from __future__ import annotations

import io
import json
import re
import secrets
import struct
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from dspark_deploy.rehearsal.compose import run_compose
from dspark_deploy.rehearsal.containerlog import ContainerLog, Entry
from dspark_deploy.rehearsal.containers import Container, ContainerConfig, rfc3339
from dspark_deploy.rehearsal.engine import Engine, EngineError, Event
from dspark_deploy.rehearsal.images import Image

JSON = "application/json"
RAW_STREAM = "application/vnd.docker.raw-stream"  # what ends with its connection
STREAMS = {"stdout": 1, "stderr": 2}
FRAME = struct.Struct(">BxxxL")  # which stream, how many bytes follow
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back. `body`: bytes, what becomes JSON, or pieces as they come; an empty one says `nothing yet`."""

    status: int
    body: Any = b""
    kind: str = JSON

    @property
    def content(self) -> bytes:
        """The whole body, where it is no stream."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def answer(engine: Engine, verb: str, target: str, body: bytes) -> Answer:
    """Do what a request asks. `target` is a path with its query, with or without the API's version in front."""
    parts = urlsplit(target)
    path = re.sub(r"^/v\d+\.\d+(?=/)", "", parts.path)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    for pattern, act in _ROUTES:
        if match := re.fullmatch(pattern, f"{verb} {path}"):
            try:
                return act(_Call(engine, unquote("".join(match.groups())), query, body))
            except EngineError as error:
                return Answer(error.status, {"message": error.message})
    return Answer(404, {"message": f"page not found: the rehearsal's engine does not speak {verb} {path}"})


@dataclass(frozen=True, slots=True)
class _Call:
    """One request. `name` is what its path names: a container, an image."""

    engine: Engine
    name: str
    query: Mapping[str, str]
    body: bytes

    def says(self, switch: str) -> bool:
        """Whether a switch of the query is on."""
        return self.query.get(switch, "0").lower() in {"1", "true"}


def _ping(call: _Call) -> Answer:
    del call
    return Answer(200, b"OK", kind="text/plain")


def _version(call: _Call) -> Answer:
    return Answer(200, call.engine.version())


def _info(call: _Call) -> Answer:
    return Answer(200, call.engine.info())


def _images(call: _Call) -> Answer:
    store = call.engine.images
    return Answer(200, [{"Id": each.id, "RepoTags": sorted(store.tags_of(each))} for each in store.all()])


def _image(call: _Call) -> Answer:
    image = _named(call)
    return Answer(200, image.document(call.engine.images.tags_of(image)))


def _tag(call: _Call) -> Answer:
    call.engine.images.tag(_named(call), f"{call.query['repo']}:{call.query.get('tag', 'latest')}")
    return Answer(201)


def _untag(call: _Call) -> Answer:
    _named(call)
    call.engine.images.untag(call.name)
    return Answer(200, [{"Untagged": call.name}])


def _named(call: _Call) -> Image:
    image = call.engine.images.find(call.name)
    if image is None:
        raise EngineError(404, f"No such image: {call.name}")
    return image


def _containers(call: _Call) -> Answer:
    found = [each for each in call.engine.containers(_labels(call)) if call.says("all") or each.running]
    return Answer(200, [_row(each) for each in found])


def _labels(call: _Call) -> dict[str, str | None]:
    """The labels that are asked for; None: whatever the value."""
    wishes = (wish.partition("=") for wish in json.loads(call.query.get("filters", "{}")).get("label", []))
    return {name: value if equals else None for name, equals, value in wishes}


def _row(container: Container) -> dict[str, Any]:
    return {
        "Id": container.id,
        "Names": [f"/{container.config.name}"],
        "Image": container.config.reference,
        "ImageID": container.image.id,
        "Created": container.created_ns // NANOSECONDS,
        "State": container.status,
        "Labels": dict(container.config.labels),
    }


def _create(call: _Call) -> Answer:
    """Of what a container can be made of, this is what one has that is looked into and never started."""
    asked = json.loads(call.body)
    config = ContainerConfig(
        name=call.query.get("name") or f"nameless-{secrets.token_hex(6)}",
        reference=asked["Image"],
        labels=asked.get("Labels") or {},
        entrypoint=tuple(asked.get("Entrypoint") or ()),
        command=tuple(asked.get("Cmd") or ()),
        environment={},
        host=asked.get("HostConfig") or {},
    )
    return Answer(201, {"Id": call.engine.create(config).id, "Warnings": []})


def _archive(call: _Call) -> Answer:
    """A file or folder of a container, as a tar."""
    path = call.query.get("path", "")
    found = call.engine.container(call.name).file(path)
    if found is None:
        raise EngineError(404, f"Could not find the file {path} in container {call.name}")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(found, arcname=found.name)
    return Answer(200, buffer.getvalue(), kind="application/x-tar")


def _inspect(call: _Call) -> Answer:
    return Answer(200, call.engine.container(call.name).document())


def _top(call: _Call) -> Answer:
    """What `docker top` shows, in the one shape that is asked for: pid, CPU time, command."""
    container = call.engine.container(call.name)
    if not container.running:
        raise EngineError(409, f"Container {call.name} is not running")
    return Answer(200, {"Titles": ["PID", "TIME", "COMMAND"], "Processes": container.processes()})


def _stop(call: _Call) -> Answer:
    grace_s = float(call.query["t"]) if "t" in call.query else None
    return Answer(204 if call.engine.stop(call.engine.container(call.name), grace_s) else 304)


def _kill(call: _Call) -> Answer:
    call.engine.kill(call.engine.container(call.name))
    return Answer(204)


def _remove(call: _Call) -> Answer:
    call.engine.remove(call.engine.container(call.name), force=call.says("force"))
    return Answer(204)


def _logs(call: _Call) -> Answer:
    frames = _frames(call, call.engine.container(call.name).log)
    return Answer(200, frames, kind="application/vnd.docker.multiplexed-stream")


def _frames(call: _Call, log: ContainerLog) -> Iterator[bytes]:
    printed = log.entries()
    since = float(call.query.get("since") or 0) * NANOSECONDS
    kept = [entry for entry in printed if entry.at >= since]
    tail = call.query.get("tail", "all")
    if tail.isdigit():
        kept = kept[max(len(kept) - int(tail), 0) :]
    yield from (_frame(call, entry) for entry in kept)
    if call.says("follow"):
        yield from (_frame(call, entry) if entry else b"" for entry in log.follow(len(printed)))


def _frame(call: _Call, entry: Entry) -> bytes:
    """One line; nothing where its stream is not asked for."""
    if not call.says(entry.stream):
        return b""
    stamp = f"{rfc3339(entry.at)} " if call.says("timestamps") else ""
    content = f"{stamp}{entry.text}".encode()
    return FRAME.pack(STREAMS[entry.stream], len(content)) + content


def _exec(call: _Call) -> Answer:
    made = call.engine.new_exec(call.engine.container(call.name), json.loads(call.body)["Cmd"])
    return Answer(201, {"Id": made.id})


def _exec_start(call: _Call) -> Answer:
    return Answer(200, call.engine.exec(call.name).run(), kind=RAW_STREAM)


def _exec_inspect(call: _Call) -> Answer:
    return Answer(200, call.engine.exec(call.name).document())


def _events(call: _Call) -> Answer:
    return Answer(200, map(_told, call.engine.events(_labels(call))), kind=JSON)


def _told(event: Event | None) -> bytes:
    if event is None:
        return b""
    container = event.container
    attributes = {**container.config.labels, "image": container.config.reference, "name": container.config.name}
    if event.action == "die":
        attributes["exitCode"] = str(container.exit_code)
    document = {
        "Type": "container",
        "Action": event.action,
        "Actor": {"ID": container.id, "Attributes": attributes},
        "time": event.at // NANOSECONDS,
        "timeNano": event.at,
    }
    return json.dumps(document).encode() + b"\n"


def _compose(call: _Call) -> Answer:
    """Not of docker's API: what the command `docker compose` hands over."""
    asked = json.loads(call.body)
    ended = run_compose(call.engine, asked["argv"], Path(asked["directory"]), asked["environment"])
    return Answer(200, {"code": ended.code, "stdout": ended.stdout, "stderr": ended.stderr})


_ROUTES: tuple[tuple[str, Callable[[_Call], Answer]], ...] = (
    ("GET /_ping", _ping),
    ("GET /version", _version),
    ("GET /info", _info),
    ("GET /events", _events),
    ("GET /images/json", _images),
    ("GET /images/(.+)/json", _image),
    ("POST /images/(.+)/tag", _tag),
    ("DELETE /images/(.+)", _untag),
    ("GET /containers/json", _containers),
    ("POST /containers/create", _create),
    ("(?:HEAD|GET) /containers/([^/]+)/archive", _archive),
    ("GET /containers/([^/]+)/json", _inspect),
    ("GET /containers/([^/]+)/top", _top),
    ("GET /containers/([^/]+)/logs", _logs),
    ("POST /containers/([^/]+)/stop", _stop),
    ("POST /containers/([^/]+)/kill", _kill),
    ("DELETE /containers/([^/]+)", _remove),
    ("POST /containers/([^/]+)/exec", _exec),
    ("POST /exec/([^/]+)/start", _exec_start),
    ("GET /exec/([^/]+)/json", _exec_inspect),
    ("POST /rehearsal/compose", _compose),
)
