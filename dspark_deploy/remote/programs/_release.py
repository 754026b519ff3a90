"""A release as a node keeps it: a folder of plain files, whole when all of them have the hashes they should have."""

from __future__ import annotations

import hashlib
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST = "manifest.json"


def sha256(path: str) -> str:
    """The file's hash as hex digits."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def holds(folder: str, files: Mapping[str, str]) -> bool:
    """Whether `folder` has every file of `files` (name -> hash) as it should be."""
    try:
        return all(sha256(os.path.join(folder, name)) == expected for name, expected in files.items())
    except OSError:
        return False


def kept_whole(folder: str) -> list[str]:
    """The ids of the releases in `folder` that are whole by their own manifest, in order of their ids."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [name for name in names if not name.startswith(".") and _is_whole(os.path.join(folder, name))]


def _is_whole(folder: str) -> bool:
    try:
        with open(os.path.join(folder, MANIFEST), "rb") as file:
            files = {name: entry["sha256"] for name, entry in json.load(file)["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not one that this tool wrote
        return False
    return bool(files) and holds(folder, files)
