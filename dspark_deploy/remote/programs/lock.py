"""Hold the lock of one pair on this node for as long as the caller lives.

Request: `pair`, `owner` (what another run is shown), `idle_s` (free without a heartbeat byte for so long; default 30).
Answer: `{"locked": true}`, then the program stays; or `{"locked": false, "owner": {...}}`, and it ends. The lock is the
kernel's, on a file: it is free when this process is gone, however that came about, so that nothing is ever stale.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import time

from dspark_deploy.remote.programs._frame import READ_SIZE, Call, serve
from dspark_deploy.remote.programs._state import not_writable, own_folder, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

IDLE_S = 30.0


def main(call: Call) -> None:
    """See the module."""
    folder = own_folder(state_folder(call.request["pair"]))
    owner_file = os.path.join(folder, "lock.json")
    if not _take(os.path.join(folder, "lock")):
        call.answer({"locked": False, "owner": _read(owner_file)})
        return
    _write(owner_file, {"holder": os.getpid(), "since": _now(), **call.request["owner"]})
    call.answer({"locked": True})
    _stay(call.request.get("idle_s", IDLE_S))
    os.unlink(owner_file)


def _take(path: str) -> bool:
    """Whether the lock is ours. The descriptor stays open until the process ends."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise not_writable(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stay(idle_s: float) -> None:
    """Return at the end of standard input, or after `idle_s` without a byte."""
    while select.select([0], [], [], idle_s)[0]:
        if not os.read(0, READ_SIZE):
            return


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _write(path: str, document: dict[str, Any]) -> None:
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(document, file)
    os.replace(part, path)


def _read(path: str) -> dict[str, Any] | None:
    """What the holder wrote; None in the moment before it has."""
    try:
        with open(path, encoding="utf-8") as file:
            owner: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return None
    return owner


if __name__ == "__main__":
    serve(main)
