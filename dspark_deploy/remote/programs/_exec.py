"""Run a command in a container, and read what a container has printed: streams of the engine's own shape.

See docker's API, ContainerAttach, `Stream format`: frames of eight bytes (which stream, how many follow) and data.
"""

from __future__ import annotations

import json
import struct

from dspark_deploy.remote.programs._engine import CREATED, OK, Engine, quoted, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HEADER = struct.Struct(">BxxxL")
STDERR = 2


def run_inside(container: str, argv: Sequence[str], timeout_s: float) -> tuple[int, bytes, str]:
    """Exit code, standard output and standard error of a command in a running container. Raises NoEngine.

    The engine can't end what was begun: the command has to limit itself to less than `timeout_s`.
    """
    engine = _asked(timeout_s)
    wanted = {"AttachStdout": True, "AttachStderr": True, "Cmd": list(argv)}
    status, _, body = engine.ask("POST", f"/containers/{quoted(container)}/exec", wanted)
    if status != CREATED:
        raise refused(status, body)
    name = str(json.loads(body)["Id"])
    out, err = demultiplex(_stream(engine, "POST", f"/exec/{name}/start", {"Detach": False, "Tty": False}))
    ended = _asked(timeout_s).get(f"/exec/{name}/json") or {}
    return int(ended.get("ExitCode") or 0), out, err.decode(errors="replace")


def first_lines(container: str, since_s: int, most_bytes: int, timeout_s: float) -> list[str]:
    """What a container printed first since a time, seconds since the epoch; about as much as asked for. NoEngine."""
    path = f"/containers/{quoted(container)}/logs?stdout=1&stderr=1&since={since_s}"
    out, err = demultiplex(_stream(_asked(timeout_s), "GET", path), most_bytes)
    return (out + err).decode(errors="replace").splitlines()


def demultiplex(parts: Iterable[bytes], most_bytes: int | None = None) -> tuple[bytes, bytes]:
    """Standard output and standard error of a stream of frames; about the first `most_bytes` of it."""
    data, taken = bytearray(), 0
    kept = {False: bytearray(), True: bytearray()}
    for part in parts:
        data += part
        while len(data) >= HEADER.size:
            stream, size = HEADER.unpack_from(data)
            end = HEADER.size + size
            if len(data) < end:
                break
            kept[stream == STDERR] += data[HEADER.size : end]
            del data[:end]
            taken += size
        if most_bytes is not None and taken >= most_bytes:
            break
    return bytes(kept[False]), bytes(kept[True])


def _asked(timeout_s: float) -> Engine:
    """A connection of its own: a stream uses it up."""
    engine = Engine(timeout_s)
    engine.version()
    return engine


def _stream(engine: Engine, method: str, path: str, document: object = None) -> Iterable[bytes]:
    try:
        response = engine.open(method, path, document)
        if response.status != OK:
            raise refused(response.status, b"".join(response.parts()))
        yield from response.parts()
    except (OSError, ValueError) as error:
        raise engine.gone(error) from error
