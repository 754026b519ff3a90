"""What this node remembers of the pair, and whether its rank can use the GPU: everything that `status` shows beside the
engine's own account, and nothing that takes long.

Request: `pair`; `container` (the rank's id, or null). Answer: `noted` (`at` and `values`, as the pair last came up well
here, or null); `hashed` (a list of `at`, `folder` and `verdict`: snapshots of which every file was hashed); `gpu` (null
without a container, else `usable`, which is null where it can't be told, and `detail`).
"""

from __future__ import annotations

import json

from dspark_deploy.remote.programs._engine import NoEngine
from dspark_deploy.remote.programs._exec import run_inside
from dspark_deploy.remote.programs._frame import Call, serve
from dspark_deploy.remote.programs._notes import kept_note
from dspark_deploy.remote.programs._state import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CACHE = "cache.jsonl"  # see _cache_journal.py
GPU_S = 8  # a driver that hangs holds whoever asks; the command ends itself before we stop waiting
LIST_GPUS = ("timeout", str(GPU_S), "nvidia-smi", "-L")
NO_COMMAND = (126, 127)  # of an exec: the image has no such program
LOST = ("Failed to initialize NVML", "No devices were found", "couldn't communicate with the NVIDIA driver")


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    folder = state_folder(call.request["pair"])
    container = call.request["container"]
    call.answer({
        "noted": kept_note(folder),
        "hashed": _hashed(f"{folder}/{CACHE}"),
        "gpu": None if container is None else _gpu(container),
    })  # fmt: skip


def _hashed(path: str) -> list[dict[str, Any]]:
    """The last conclusion of each snapshot's folder. A line that can't be read tells nothing."""
    found: dict[str, dict[str, Any]] = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if '"verdict"' in line]
    except OSError:
        return []
    for line in lines:
        try:
            entry = json.loads(line)
            found[entry["folder"]] = {name: entry[name] for name in ("at", "folder", "verdict")}
        except (ValueError, LookupError, TypeError):  # cut short by a full disk
            continue
    return list(found.values())


def _gpu(container: str) -> dict[str, Any]:
    """Asked where it counts: a container can lose a GPU that its node still has."""
    try:
        code, out, said = run_inside(container, LIST_GPUS, GPU_S + 2.0)
    except NoEngine as error:
        return {"usable": None, "detail": error.detail}
    words = (out.decode(errors="replace") + said).strip()
    first = words.splitlines()[0] if words else f"nvidia-smi ended with exit code {code}"
    if code == 0 and words.startswith("GPU "):
        return {"usable": True, "detail": first.partition(" (UUID")[0]}
    if any(text in words for text in LOST):
        return {"usable": False, "detail": first}
    return {"usable": None, "detail": "there is no nvidia-smi in its image" if code in NO_COMMAND else first}


if __name__ == "__main__":
    serve(main)
