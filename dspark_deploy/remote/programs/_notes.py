"""What a node keeps to say later: what it looked like when the pair last came up well, and what is in its images."""

from __future__ import annotations

import contextlib
import json
import os

from dspark_deploy.remote.programs._frame import WHOLE, Refused
from dspark_deploy.remote.programs._state import own_folder, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NOTE = "good.json"
MARKS = "marks.json"
LOOKS = "images"


def kept_note(folder: str) -> dict[str, Any] | None:
    """The note in a pair's folder: `at` and `values`. None where there is none, or none that can be read."""
    found = _read(f"{folder}/{NOTE}")
    return found if found is not None and isinstance(found.get("values"), dict) and "at" in found else None


def kept_marks(folder: str) -> dict[str, Any]:
    """What runs left for the next one to heed, by name."""
    return _read(f"{folder}/{MARKS}") or {}


def kept_look(folder: str, image_id: str) -> dict[str, Any] | None:
    """What is known of an image's content, by its id."""
    found = _read(_look_path(folder, image_id))
    return found if found is not None and found.get("image_id") == image_id else None


def keep_look(pair: str, found: Mapping[str, Any]) -> None:
    """Keep what is in an image. Where it can't be kept, a full disk for example, the next run looks again."""
    with contextlib.suppress(OSError, Refused):
        folder = own_folder(state_folder(pair))
        own_folder(folder, LOOKS)
        keep(_look_path(folder, found["image_id"]), found)


def _look_path(folder: str, image_id: str) -> str:
    return f"{folder}/{LOOKS}/{image_id.rpartition(':')[2]}.json"


def keep(path: str, document: Mapping[str, Any]) -> None:
    """Write it whole or not at all, closed to others. Raises OSError."""
    part = f"{path}.part-{os.getpid()}"
    with WHOLE:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file)
        os.replace(part, path)


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
