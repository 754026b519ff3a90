"""What surrounds a snapshot: unfinished transfers, files of other users, room on the disk, where else it may lie."""

from __future__ import annotations

import os
import time

from dspark_deploy.remote.programs._cache_files import user_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def unfinished(transfers: str, locks: str) -> dict[str, Any] | None:
    """The files in `transfers` that a transfer left or still writes; None where there are none.

    `age_s` is how long ago anything of them, or a lock beside them, was touched.
    """
    found = [entry for entry in _below(transfers) if entry.name.endswith(".incomplete")]
    if not found:
        return None
    touched = [_status(entry) for entry in (*found, *_below(locks))]
    newest = max((status.st_mtime for status in touched if status is not None), default=0.0)
    sizes = [status.st_size for status in map(_status, found) if status is not None]
    return {"folder": transfers, "count": len(found), "bytes": sum(sizes), "age_s": max(time.time() - newest, 0.0)}


def owned_by_others(*folders: str) -> dict[str, Any] | None:
    """What this user could not repair; None where there is nothing of the kind. Nothing is tried, only looked at."""
    found = [entry for folder in folders for entry in _below(folder) if not entry.is_symlink()]
    closed = [entry for entry in found if not os.access(entry.path, os.W_OK)]
    if not closed:
        return None
    unreadable = [entry for entry in closed if not os.access(entry.path, os.R_OK)]
    statuses = [status for status in map(_status, closed) if status is not None]
    return {
        "count": len(closed),
        "unreadable": len(unreadable),
        "owners": sorted({user_name(status.st_uid) for status in statuses}),
        "example": (unreadable or closed)[0].path,
        "folders": [folder for folder in folders if os.path.isdir(folder)],
    }


def other_places(hf_home: str, hub: str, folder: str, revision: str | None) -> list[dict[str, str]]:
    """Where the library, asked on this node, would look, and where the model does lie; `hub` itself left out.

    In the order of huggingface_hub, constants.py: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME.
    """
    environment = os.environ
    candidates = [(name, environment.get(name)) for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")]
    for name, below in (("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub")):
        candidates.append((name, f"{environment[name]}/{below}" if environment.get(name) else None))
    candidates += [("TRANSFORMERS_CACHE", environment.get("TRANSFORMERS_CACHE"))]
    candidates += [("the usual place", "~/.cache/huggingface/hub"), ("hf_home itself", hf_home)]
    found: dict[str, str] = {}
    for setting, place in candidates:
        path = os.path.realpath(os.path.expandvars(os.path.expanduser(place))) if place else ""
        wanted = f"{path}/{folder}/snapshots/{revision or ''}"
        if place and path != os.path.realpath(hub) and os.path.isdir(wanted):
            found.setdefault(path, setting)
    return [{"setting": setting, "path": path} for path, setting in found.items()]


def free_bytes(path: str) -> int | None:
    """Room for this user on the disk where `path` lies or would lie."""
    while not os.path.exists(path) and path not in {"/", ""}:
        path = os.path.dirname(path)
    try:
        disk = os.statvfs(path or "/")
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def _below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Everything in the folder, at any depth; what can't be listed is left out."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path)


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # gone since it was listed
        return None
