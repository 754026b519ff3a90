"""End the program that holds the pair's lock on this node.

Request: `pair`. Answer: `owner`, what the holder had written beside the lock; null where nobody held it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time

from dspark_deploy.remote.programs._frame import Call, Refused, serve
from dspark_deploy.remote.programs._state import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT_S, TURN_S = 5.0, 0.02


def main(call: Call) -> None:
    """See the module."""
    folder = state_folder(call.request["pair"])
    if _is_free(f"{folder}/lock"):
        call.answer({"owner": None})
        return
    owner = _owner(f"{folder}/lock.json")
    try:
        os.kill(owner["holder"], signal.SIGTERM)
    except (ProcessLookupError, PermissionError, KeyError, TypeError) as error:
        raise Refused(
            "the lock is held, and its holder can't be ended",
            why=str(error),
            remedy="run it again, as the holder's user",
        ) from error
    deadline = time.monotonic() + LIMIT_S
    while not _is_free(f"{folder}/lock"):
        if time.monotonic() > deadline:
            raise Refused("the holder of the lock does not end", why=json.dumps(owner), remedy="kill it on that node")
        time.sleep(TURN_S)
    call.answer({"owner": owner})


def _is_free(path: str) -> bool:
    """Whether the lock could be taken; it is given back at once."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def _owner(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            owner: dict[str, Any] = json.load(file)
    except (FileNotFoundError, ValueError):
        return {}  # in the moment before the holder has written it
    return owner


if __name__ == "__main__":
    serve(main)
