"""Whether a rank works although it prints nothing: its processes' CPU time, its compilers, the size of its caches.

Request: `container` (its id). Answer: `processes` (each `pid`, `command`, `cpu_s`), `caches` (folder on the node ->
`bytes`, `files`), `unread` (what could not be read, and why). Asked of the engine as its user may: no root is needed.
"""

from __future__ import annotations

import _thread
import os
import time

from dspark_deploy.remote.programs._engine import Engine, NoEngine
from dspark_deploy.remote.programs._frame import Call, end_group, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

LIMIT_S = 8.0
ENGINE_S = 5.0
MOST_FILES = 50_000  # of one cache; more would take its time on every turn
TOP = "ps_args=-o%20pid,time,comm"
# Variables of vLLM, FlashInfer, TileLang, Triton, torch and DeepGEMM that name a folder for compiled kernels.
CACHES = ("CACHE_ROOT", "CACHE_DIR", "WORKSPACE_BASE", "CACHE_PATH")


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    document: dict[str, Any] = {"processes": None, "caches": {}, "unread": {}}
    _thread.start_new_thread(_answer_in_time, (call, document))
    _read(call.request["container"], document)
    call.answer(document)
    end_group()


def _answer_in_time(call: Call, document: dict[str, Any]) -> None:
    """A dead mount may hold the main thread for ever: what is known by then is still an answer."""
    time.sleep(LIMIT_S)
    call.answer({**document, "unread": {**document["unread"], "the rest": f"no answer within {LIMIT_S:g} s"}})
    end_group()


def _read(container: str, document: dict[str, Any]) -> None:
    engine = Engine(ENGINE_S)
    try:
        engine.version()
        document["processes"] = _processes(engine.get(f"/containers/{container}/top?{TOP}"))
    except NoEngine as error:
        document["unread"]["CPU time and compilers"] = error.detail
    try:
        inspected = engine.get(f"/containers/{container}/json") or {}
    except NoEngine as error:
        document["unread"]["compile caches"] = error.detail
        return
    for name, folder in _cache_folders(inspected):
        if folder is None:
            document["unread"][name] = "it lies inside the container"
        else:
            document["caches"][folder] = _size(folder, document["unread"])


def _processes(told: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """Of `docker top`: rows of pid, time as [DD-]hh:mm:ss, command. None: the container is gone."""
    if told is None:
        return None
    return [{"pid": int(pid), "cpu_s": _seconds(used), "command": name} for pid, used, name in told["Processes"] or []]


def _seconds(text: str) -> float:
    days, _, clock = text.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = 60 * seconds + float(part)
    return 86400 * int(days or 0) + seconds


def _cache_folders(inspected: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Variable, and its folder on the node; None where nothing is mounted there."""
    mounts = {each["Destination"]: each["Source"] for each in inspected.get("Mounts") or []}
    for entry in (inspected.get("Config") or {}).get("Env") or []:
        name, _, path = entry.partition("=")
        if name.endswith(CACHES) and path.startswith("/"):
            yield name, _on_node(path, mounts)


def _on_node(path: str, mounts: Mapping[str, str]) -> str | None:
    inside = path
    while inside != "/":
        if inside in mounts:
            return mounts[inside] + path[len(inside) :]
        inside = os.path.dirname(inside)
    return None


def _size(folder: str, unread: dict[str, str]) -> dict[str, int]:
    """Bytes and files below it; nothing yet is zero."""
    size = files = 0
    waiting = [folder]
    while waiting and files < MOST_FILES:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif (found := _bytes(entry)) is not None:
                        size, files = size + found, files + 1
        except FileNotFoundError:
            continue
        except OSError as error:
            unread[here] = error.strerror or str(error)
    return {"bytes": size, "files": files}


def _bytes(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:  # it went while we looked
        return None


if __name__ == "__main__":
    serve(main)
