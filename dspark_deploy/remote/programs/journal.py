"""What runs have left on this node about the pair: its history, and marks that the next command has to heed.

Request: `pair`; `append` (one entry for the history, optional); `set` (mark -> document, or null to take it away;
optional); `tail` (how many of the last entries to tell; default 50).
Answer: `history` (oldest first), `marks` (mark -> document), `releases` (id -> what its manifest says is served).
"""

from __future__ import annotations

import json
import os

from dspark_deploy.remote.programs._frame import WHOLE, Call, serve
from dspark_deploy.remote.programs._notes import MARKS, keep, kept_marks
from dspark_deploy.remote.programs._release import MANIFEST, kept_whole
from dspark_deploy.remote.programs._state import not_writable, own_folder, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HISTORY = "history.jsonl"
TAIL = 50
KEPT_BYTES = 1 << 20  # of the history; the older half goes when it is longer


def main(call: Call) -> None:
    """See the module."""
    request = call.request
    folder = state_folder(request["pair"])
    if request.get("append") or request.get("set"):
        own_folder(folder)
    try:
        if request.get("append"):
            _append(f"{folder}/{HISTORY}", request["append"])
        if request.get("set"):
            marks = {**kept_marks(folder), **request["set"]}
            keep(f"{folder}/{MARKS}", {name: mark for name, mark in marks.items() if mark is not None})
    except OSError as error:
        raise not_writable(folder, error) from error
    tail = request.get("tail", TAIL)
    history = _history(f"{folder}/{HISTORY}")[-tail:] if tail else []
    call.answer({"history": history, "marks": kept_marks(folder), "releases": _releases(folder)})


def _append(path: str, entry: dict[str, Any]) -> None:
    """Add one line; a line that a dead run left half-written is ended first."""
    _shorten(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "rb+") as file:
        size = file.seek(0, os.SEEK_END)
        broken = False
        if size:
            file.seek(size - 1)
            broken = file.read(1) != b"\n"
        file.write((b"\n" if broken else b"") + json.dumps(entry).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _shorten(path: str) -> None:
    try:
        if os.path.getsize(path) <= KEPT_BYTES:
            return
    except FileNotFoundError:
        return
    entries = _history(path)
    part = f"{path}.part-{os.getpid()}"
    with WHOLE:
        with open(part, "w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(entry)}\n" for entry in entries[len(entries) // 2 :])
        os.chmod(part, 0o600)
        os.replace(part, path)


def _history(path: str) -> list[dict[str, Any]]:
    """Every entry that can be read, oldest first."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return []
    return [entry for entry in map(_parsed, lines) if entry is not None]


def _releases(folder: str) -> dict[str, Any]:
    """What each whole release serves, as its manifest says it."""
    found = {}
    for release in kept_whole(f"{folder}/releases"):
        with open(f"{folder}/releases/{release}/{MANIFEST}", encoding="utf-8") as file:
            found[release] = (_parsed(file.read()) or {}).get("served")
    return found


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


if __name__ == "__main__":
    serve(main)
