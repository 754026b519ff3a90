"""What is in an image: told by a container that is made of it, never started, and removed at once."""

from __future__ import annotations

import json
import re
import time

from dspark_deploy.remote.programs._engine import CREATED, NOT_FOUND, OK, quoted, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from dspark_deploy.remote.programs._engine import Engine

LABEL = "dspark.look"  # not the pair's own label: it is no rank, whoever lists those
LEFT_OVER_S = 60  # a look takes far less
BLOCK = 512  # bytes of a tar's header, and the size to which its files are filled up
PLAIN = (b"0", b"\0")  # kinds of an entry that is a plain file
VARIABLE = re.compile(r"""["'](VLLM_[A-Z0-9_]+)["']\s*:""")  # a key of the dictionary that vLLM reads them by


def look_into(engine: Engine, image: str, paths: Sequence[str], names_in: Collection[str]) -> dict[str, Any]:
    """Which of `paths` are there, and the variables of those that are in `names_in`. Raises NoEngine."""
    remove_left_over(engine, older_than_s=LEFT_OVER_S)
    container = _create(engine, image)
    try:
        present = [path for path in paths if _is_there(engine, container, path)]
        names = {path: _variables(engine, container, path) for path in present if path in names_in}
    finally:
        engine.ask("DELETE", f"/containers/{container}?force=1&v=1")
    absent = [path for path in paths if path not in present]
    return {"image_id": image, "present": present, "absent": absent, "names": names}


def remove_left_over(engine: Engine, *, older_than_s: float) -> None:
    """What a look left whose node lost power in the middle; with 0, also what this very one has made."""
    filters = quoted(json.dumps({"label": [LABEL]}))
    for found in engine.get(f"/containers/json?all=1&filters={filters}") or []:
        if found["Created"] <= time.time() - older_than_s:
            engine.ask("DELETE", f"/containers/{found['Id']}?force=1&v=1")


def _create(engine: Engine, image: str) -> str:
    """A container with nothing of this node in it. It is never started, so what it would run does not matter."""
    wanted = {
        "Image": image,
        "Entrypoint": ["/never-started"],
        "Cmd": [],
        "Labels": {LABEL: "1"},
        "NetworkDisabled": True,
        "HostConfig": {"NetworkMode": "none"},
    }
    status, _, body = engine.ask("POST", "/containers/create", wanted)
    if status != CREATED:
        raise refused(status, body)
    return str(json.loads(body)["Id"])


def _is_there(engine: Engine, container: str, path: str) -> bool:
    status, _, body = engine.ask("HEAD", f"/containers/{container}/archive?path={quoted(path)}")
    if status not in {OK, NOT_FOUND}:
        raise refused(status, body)
    return status == OK


def _variables(engine: Engine, container: str, path: str) -> list[str]:
    status, _, body = engine.ask("GET", f"/containers/{container}/archive?path={quoted(path)}")
    if status != OK:
        raise refused(status, body)
    return sorted(set(VARIABLE.findall(_first_file(body).decode(errors="replace"))))


def _first_file(archive: bytes) -> bytes:
    """The first plain file of a tar; empty where it has none. The import of tarfile costs as much as a whole probe."""
    at = 0
    while at + BLOCK <= len(archive) and archive[at]:
        size = int(archive[at + 124 : at + 136].strip(b"\0 ") or b"0", 8)
        begin = at + BLOCK
        if archive[at + 156 : at + 157] in PLAIN:
            return archive[begin : begin + size]
        at = begin + -(-size // BLOCK) * BLOCK
    return b""
