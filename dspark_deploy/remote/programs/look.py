"""Look into an image without starting anything: a container is made of it, its files are read, and it is removed.

Request: `pair`, `image` (an id), `paths` (absolute), `names_in` (those of them that are vLLM's lists of variables).
Answer: `image_id`, `present`, `absent`, and `names` by path. The node keeps it, by the image's id.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tarfile
import time

from dspark_deploy.remote.programs._engine import CREATED, NOT_FOUND, OK, Engine, NoEngine, quoted, refused
from dspark_deploy.remote.programs._frame import Call, Refused, serve
from dspark_deploy.remote.programs._notes import LOOKS, keep, look_path
from dspark_deploy.remote.programs._state import own_folder, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LABEL = "dspark.look"  # not the pair's own label: it is no rank, whoever lists those
LEFT_OVER_S = 60  # a look takes far less
ANSWER_S = 20.0
VARIABLE = re.compile(r"""["'](VLLM_[A-Z0-9_]+)["']\s*:""")  # a key of the dictionary that vLLM reads them by


def main(call: Call) -> None:
    """See the module."""
    request = call.request
    call.end_with_session(lambda: _remove_left_over(Engine(ANSWER_S), older_than_s=0))
    try:
        answer = _look(request["image"], request["paths"], set(request["names_in"]))
    except NoEngine as error:
        raise Refused(f"the image {request['image'][:19]} can't be looked into", why=error.detail) from error
    call.answer(answer)
    folder = own_folder(state_folder(request["pair"]))
    own_folder(folder, LOOKS)
    with contextlib.suppress(OSError):  # a full disk: the next run looks again
        keep(look_path(folder, request["image"]), answer)


def _look(image: str, paths: list[str], names_in: set[str]) -> dict[str, Any]:
    engine = Engine(ANSWER_S)
    engine.version()
    _remove_left_over(engine, older_than_s=LEFT_OVER_S)
    container = _create(engine, image)
    try:
        present = [path for path in paths if _is_there(engine, container, path)]
        names = {path: _variables(engine, container, path) for path in present if path in names_in}
    finally:
        engine.ask("DELETE", f"/containers/{container}?force=1&v=1")
    absent = [path for path in paths if path not in present]
    return {"image_id": image, "present": present, "absent": absent, "names": names}


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
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        content = archive.extractfile(archive.next() or "")
        text = content.read().decode(errors="replace") if content else ""
    return sorted(set(VARIABLE.findall(text)))


def _remove_left_over(engine: Engine, *, older_than_s: float) -> None:
    """What a look leaves whose node lost power in the middle; what this one has made, where its caller is gone."""
    filters = quoted(json.dumps({"label": [LABEL]}))
    for found in engine.get(f"/containers/json?all=1&filters={filters}") or []:
        if found["Created"] <= time.time() - older_than_s:
            engine.ask("DELETE", f"/containers/{found['Id']}?force=1&v=1")


if __name__ == "__main__":
    serve(main)
