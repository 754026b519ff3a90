"""What this node has found out about contents: a line a file, written the moment it is known, and a line a snapshot.

A run that was killed loses only the files it was reading. A file counts as known while its size and time are the same;
one that was found wrong only while nothing at all has touched it, so that a mended one is never taken for the old one.
"""

from __future__ import annotations

import json
import os
import time

from dspark_deploy.remote.programs._cache_files import File, stamp
from dspark_deploy.remote.programs._frame import Refused
from dspark_deploy.remote.programs._state import own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dspark_deploy.remote.programs._cache_snapshot import Snapshot

NAME = "cache.jsonl"
DIGITS = {40: "sha1", 64: "sha256"}  # the length of a blob's name says which hash it is


class Journal:
    """The journal of one pair's state folder. Reading needs no folder; writing makes it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, NAME)
        self._files: dict[str, dict[str, Any]] = {}
        self._snapshots: dict[str, dict[str, Any]] = {}
        self._descriptor: int | None = None
        self.problem = ""  # why nothing more is kept
        self._load()

    def remind(self, snapshot: Snapshot, *, of_faults: bool) -> None:
        """Give the snapshot's files the digests that are known of them; `of_faults`: those of wrong ones too."""
        for file in snapshot.files.values():
            known = self._known(file)
            if known is not None and (of_faults or not is_misnamed(file.blob, known)):
                file.digests, file.hashed = known, True

    def last(self, snapshot: Snapshot) -> dict[str, Any] | None:
        """When all of this snapshot was last hashed, how that ended, and whether it is still the same tree."""
        entry = self._snapshots.get(snapshot.folder or "")
        if entry is None:
            return None
        same = entry["fingerprint"] == snapshot.fingerprint()
        return {"at": entry["at"], "verdict": entry["verdict"], "unchanged": same}

    def open(self) -> None:
        """Begin to write, with what is known and nothing twice. Where that can't be, `problem` says why."""
        try:
            part = os.path.join(own_folder(self._folder), f"{NAME}.part")
            with open(part, "w", encoding="utf-8") as file:
                file.writelines(
                    f"{json.dumps(entry)}\n" for entry in (*self._files.values(), *self._snapshots.values())
                )
            os.replace(part, self._path)
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        except Refused as refused:
            self.problem = refused.document["message"]
        except OSError as error:
            self.problem = f"{self._path}: {error.strerror}"

    def keep(self, file: File) -> None:
        """A file's digests, as of now. From any thread."""
        status = file.status
        if status is not None:
            size, mtime_ns = stamp(status)
            entry = {"path": file.path, "size": size, "mtime_ns": mtime_ns, "ctime_ns": status.st_ctime_ns}
            self._append({**entry, "digests": file.digests})

    def conclude(self, snapshot: Snapshot) -> None:
        """How hashing all of a snapshot ended."""
        wrong = any(is_misnamed(file.blob, file.digests) for file in snapshot.files.values() if file.hashed)
        verdict = "corrupt" if wrong else "complete"
        if any(file.required and file.problem for file in snapshot.files.values()):
            verdict = "partial"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        entry = {"at": now, "folder": snapshot.folder, "verdict": verdict, "fingerprint": snapshot.fingerprint()}
        self._snapshots[snapshot.folder or ""] = entry
        self._append(entry)

    def _known(self, file: File) -> dict[str, str] | None:
        entry = self._files.get(file.path)
        if entry is None or file.status is None or (entry["size"], entry["mtime_ns"]) != stamp(file.status):
            return None
        digests: dict[str, str] = entry["digests"]
        if is_misnamed(file.blob, digests) and entry["ctime_ns"] != file.status.st_ctime_ns:
            return None
        return digests

    def _append(self, entry: dict[str, Any]) -> None:
        if self._descriptor is None:
            return
        try:
            # One write: a line is there whole or not at all, whenever this process is ended.
            os.write(self._descriptor, f"{json.dumps(entry)}\n".encode())
        except OSError as error:
            self.problem = f"{self._path}: {error.strerror}"

    def _load(self) -> None:
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                lines = file.readlines()
        except OSError:
            return
        for line in lines:
            try:
                entry = json.loads(line)
                (self._files if "path" in entry else self._snapshots)[entry.get("path") or entry["folder"]] = entry
            except (ValueError, TypeError, LookupError, AttributeError):  # cut short by a full disk
                continue


def is_misnamed(blob: str | None, digests: dict[str, str]) -> bool:
    """Whether a blob's name is a hash and its content has another one."""
    kind = DIGITS.get(len(blob or ""))
    return kind is not None and kind in digests and digests[kind] != blob
