"""A path as the SSH user sees it."""

from __future__ import annotations

import os
import stat

from dspark_deploy.remote.programs._network import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_path(asked: str, root: str) -> dict[str, Any]:
    """An absent path is as writable as its nearest parent, and lies on the same disk."""
    path = os.path.expanduser(asked)
    kind = _kind(path)
    existing = path
    while not os.path.exists(existing) and existing not in {"/", ""}:
        existing = os.path.dirname(existing)
    disk = os.statvfs(existing) if existing else None
    return {
        "path": path,
        "kind": kind,
        "writable": os.access(existing, os.W_OK),
        "free_bytes": disk.f_bavail * disk.f_frsize if disk else None,
        "filesystem": _filesystem(existing, root),
    }


def _filesystem(path: str, root: str) -> str | None:
    """The type of the file system that a path lies on, by the longest mount point above it."""
    real, best, kind = os.path.realpath(path), "", None
    for line in (read_text(f"{root}/proc/self/mounts") or "").splitlines():
        fields = line.split()
        point = fields[1].replace("\\040", " ")
        if len(point) >= len(best) and (real == point or real.startswith(point.rstrip("/") + "/")):
            best, kind = point, fields[2]
    return kind


def _kind(path: str) -> str:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError:
        return "unreadable"
    if not os.access(path, os.R_OK):
        return "unreadable"
    return "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"
