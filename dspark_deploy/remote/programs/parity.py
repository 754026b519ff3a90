"""What the pair's rank on this node runs with: image, argv, environment, mounts, files, vllm package, preparation.

Request: `pair`; `families` (name -> `python`, `package`, `cache`, `unread`: in its images); `program` (the text of
inside.py); `limit_s` (for that); `salt`; `secret_variable`, `secret_flag` (patterns of names whose values are secrets).
Answer: `rank`, null where none runs. What could not be told stands in its `untold`, with the reason. A secret's value
never leaves the node: `{"secret": ...}` is a hash of it with the salt, which tells whether two are equal.
"""

from __future__ import annotations

import calendar
import hashlib
import json
import os
import re
import time

from dspark_deploy.remote.programs._docker import read_image
from dspark_deploy.remote.programs._engine import Engine, NoEngine, quoted
from dspark_deploy.remote.programs._exec import first_lines, run_inside
from dspark_deploy.remote.programs._frame import Call, Refused, serve
from dspark_deploy.remote.programs._release import MANIFEST, sha256
from dspark_deploy.remote.programs._state import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER_S = 20.0
LIMIT_MARGIN_S = 10.0  # of the engine's answer over the program's own limit
PRINTED_BYTES = 1 << 20  # of the log's beginning; the preparation says a few lines
OWN_WORDS = "dspark "  # what serve.sh and the programs that it runs begin their lines with


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    engine = Engine(ANSWER_S)
    try:
        engine.version()
        found = _running(engine, call.request["pair"])
        call.answer({"rank": None if found is None else _rank(engine, found, call.request)})
    except NoEngine as error:
        raise Refused("the docker daemon can't be asked", why=error.detail, remedy="see `dspark doctor`") from error


def _running(engine: Engine, pair: str) -> dict[str, Any] | None:
    filters = quoted(json.dumps({"label": [f"dspark.pair={pair}"], "status": ["running"]}))
    listed = engine.get(f"/containers/json?filters={filters}") or []
    found: dict[str, Any] | None = engine.get(f"/containers/{listed[0]['Id']}/json") if listed else None
    return found


def _rank(engine: Engine, found: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    config = found["Config"]
    labels = config.get("Labels") or {}
    untold: dict[str, str] = {}
    mounts = [each for each in found.get("Mounts") or [] if each.get("Type") != "volume"]
    family = request["families"].get(labels.get("dspark.family"))
    rank = {
        "container": found["Id"],
        "started_at": found["State"]["StartedAt"],
        "labels": labels,
        "image": _image(engine, found["Image"], config.get("Image") or "", untold),
        "argv": _argv(_words(config), request),
        "environment": _environment(config.get("Env") or [], request),
        "mounts": {each["Destination"]: "read-write" if each.get("RW") else "read-only" for each in mounts},
        "package": None,
        "mounted": {},
        "printed": _printed(found, untold),
        "release_files": _release(request["pair"], labels.get("dspark.release") or "", mounts),
        "untold": untold,
    }
    if family is None:
        untold["package"] = f"its image family is not known here: {labels.get('dspark.family')}"
    else:
        rank |= _inside(found["Id"], family, mounts, request, untold)
    return rank


def _words(config: dict[str, Any]) -> list[str]:
    return [*(config.get("Entrypoint") or []), *(config.get("Cmd") or [])]


def _image(engine: Engine, image_id: str, reference: str, untold: dict[str, str]) -> dict[str, Any] | None:
    image = read_image(engine, image_id)
    if image is None:
        untold["image"] = f"the image {image_id[:19]} is gone from this node"
        return None
    return {**image, "reference": reference}


def _argv(words: list[str], request: dict[str, Any]) -> list[Any]:
    """The words; those that follow a secret's flag are hidden, as is what stands behind its `=`."""
    shown: list[Any] = []
    hiding = False
    for word in words:
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            hiding = re.search(request["secret_flag"], flag) is not None
            shown += [flag, _hidden(value, request)] if hiding and equals else [word]
        else:
            shown.append(_hidden(word, request) if hiding else word)
    return shown


def _environment(entries: list[str], request: dict[str, Any]) -> dict[str, Any]:
    pairs = (entry.partition("=") for entry in entries)
    secret = re.compile(request["secret_variable"], re.IGNORECASE)
    return {name: _hidden(value, request) if secret.search(name) else value for name, _, value in pairs}


def _hidden(value: str, request: dict[str, Any]) -> dict[str, str]:
    return {"secret": hashlib.sha256(f"{request['salt']}{value}".encode(errors="replace")).hexdigest()}


def _printed(found: dict[str, Any], untold: dict[str, str]) -> list[str]:
    """What the container's own preparation said since it was started, up to the first other words."""
    since = calendar.timegm(time.strptime(found["State"]["StartedAt"][:19], "%Y-%m-%dT%H:%M:%S"))
    try:
        lines = first_lines(found["Id"], since, PRINTED_BYTES, ANSWER_S)
    except NoEngine as error:
        untold["printed"] = error.detail
        return []
    return [line for line in lines if line.startswith(OWN_WORDS)]


def _release(pair: str, release: str, mounts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the release's folder holds, against its manifest, and where its files are mounted."""
    folder = f"{state_folder(pair)}/releases/{release}"
    places = {os.path.realpath(each.get("Source") or ""): each["Destination"] for each in mounts}
    return [
        {
            "name": name,
            "sha256": pushed,
            "state": _as_pushed(f"{folder}/{name}", pushed),
            "mounted_at": _place(os.path.realpath(f"{folder}/{name}"), places),
        }
        for name, pushed in _manifest(folder).items()
    ]


def _place(path: str, places: dict[str, str]) -> str | None:
    """Where a file is in the container, be it mounted itself or with a folder; None where it is in none."""
    source = path
    while source != "/":
        if source in places:
            return places[source] + path[len(source) :]
        source = os.path.dirname(source)
    return None


def _manifest(folder: str) -> dict[str, str]:
    """File -> hash; empty where there is no readable manifest."""
    try:
        with open(f"{folder}/{MANIFEST}", "rb") as file:
            return {name: entry["sha256"] for name, entry in json.load(file)["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # gone, or not one that this tool wrote
        return {}


def _as_pushed(path: str, expected: str) -> str:
    try:
        return "whole" if sha256(path) == expected else "changed"
    except OSError:
        return "missing"


def _inside(
    container: str,
    family: dict[str, Any],
    mounts: list[dict[str, Any]],
    request: dict[str, Any],
    untold: dict[str, str],
) -> dict[str, Any]:
    """What the container itself sees of its files, but for secrets and the model's cache: `verify-cache` reads that."""
    unread = (family["cache"], *family["unread"])
    targets = [each["Destination"] for each in mounts if each["Destination"] not in unread]
    asked = {
        "package": family["package"],
        "mounts": [target for target in targets if not target.startswith(f"{family['cache']}/")],
        "limit_s": request["limit_s"],
    }
    argv = [family["python"], "-I", "-S", "-c", request["program"], json.dumps(asked)]
    try:
        code, out, said = run_inside(container, argv, request["limit_s"] + LIMIT_MARGIN_S)
        found: dict[str, Any] = json.loads(out)
    except NoEngine as error:
        untold["package"] = untold["mounted"] = error.detail
        return {}
    except ValueError:
        words = (said.strip() or out.decode(errors="replace").strip()).splitlines()
        why = words[-1] if words else "it said nothing"
        untold["package"] = untold["mounted"] = f"{family['python']} in the container ended with {code}: {why}"
        return {}
    if found["package"] is None:
        untold["package"] = f"there is no {family['package']} in the container"
    return found


if __name__ == "__main__":
    serve(main)
