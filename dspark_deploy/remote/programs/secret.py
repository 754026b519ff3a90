"""The API key on this node: in a file of its own beside the releases, which serve.sh reads and nobody else may.

Request: `pair`, `key` (null: there is to be none), `change` (false: nothing is changed). Answer: `same` (whether the
node kept just that), `at` (when what it keeps now was written, seconds since the epoch; null: it keeps none), and with
`change` also `before` (the key that was there; null: there was none).
"""

from __future__ import annotations

import contextlib
import os
import stat

from dspark_deploy.remote.programs._frame import Call, serve
from dspark_deploy.remote.programs._state import SECRETS, not_writable, own_folder, secrets_at, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "VLLM_API_KEY="
MODE = 0o600


def main(call: Call) -> None:
    """See the module."""
    folder = state_folder(call.request["pair"])
    try:
        call.answer(_answer(folder, call.request["key"], change=call.request["change"]))
    except OSError as error:
        raise not_writable(f"{folder}/{SECRETS}", error) from error


def _answer(folder: str, key: str | None, *, change: bool) -> dict[str, Any]:
    path = f"{folder}/{SECRETS}"
    before = _kept(path)
    same = before == key and (key is None or stat.S_IMODE(os.stat(path).st_mode) == MODE)
    if not change:
        return {"same": same, "at": secrets_at(folder)}
    if not same:
        _keep(folder, path, key)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_part(path))  # of a run that died
    return {"same": same, "at": secrets_at(folder), "before": before}


def _kept(path: str) -> str | None:
    """The key in the file; empty where it holds something else."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            line = file.read().rstrip("\n")
    except FileNotFoundError:
        return None
    return line.removeprefix(VARIABLE) if line.startswith(VARIABLE) else ""


def _keep(folder: str, path: str, key: str | None) -> None:
    """Put the key there whole, never readable by others on the way, or take it away."""
    if key is None:
        os.unlink(path)
    else:
        own_folder(folder)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_part(path))
        descriptor = os.open(_part(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, MODE)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            os.fchmod(descriptor, MODE)  # whatever the umask
            file.write(f"{VARIABLE}{key}\n")
            file.flush()
            os.fsync(descriptor)
        os.replace(_part(path), path)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _part(path: str) -> str:
    return f"{path}.part"


if __name__ == "__main__":
    serve(main)
