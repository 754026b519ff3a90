"""Hash every file of one model in this node's cache, several at once, and go on where an earlier run stopped.

Request: that of `verify_cache`. Answers: `{"progress": {...}}` every half second (`total_bytes`, `done_bytes`, and
`known_bytes` of it that earlier runs had hashed), then `{"snapshot": ...}` with the document of `verify_cache`. The
program ends with its session, and what it has hashed by then is kept.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading

from dspark_deploy.remote.programs._cache_files import Faulty, File, Steady, stamp
from dspark_deploy.remote.programs._cache_journal import DIGITS, Journal
from dspark_deploy.remote.programs._cache_snapshot import Snapshot
from dspark_deploy.remote.programs._frame import Call, end_group, serve
from dspark_deploy.remote.programs._state import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REPORT_S = 0.5
CHUNK = 256 << 10  # bytes read at once: they stay in a core's own cache until they are hashed
FORGET = 32 << 20  # bytes after which the kernel may forget what it read
BOTH_BELOW = 16 << 20  # bytes; smaller files get both hashes, so that a copy of real files can be compared with blobs


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    snapshot, journal = Snapshot(call.request), Journal(state_folder(call.request["pair"]))
    snapshot.read()
    journal.open()
    journal.remind(snapshot, of_faults=False)
    hashing = Hashing(snapshot, journal)
    hashing.begin(os.cpu_count() or 1)
    while hashing.goes_on(REPORT_S):
        call.answer({"progress": hashing.progress()})
    if snapshot.folder is not None:
        journal.conclude(snapshot)
    call.answer({"progress": hashing.progress()})
    document = {**snapshot.document(), "hashed": journal.last(snapshot), "not_kept": journal.problem}
    call.answer({"snapshot": document})
    end_group()


class Hashing:
    """The files that are to be hashed, and how far that is."""

    def __init__(self, snapshot: Snapshot, journal: Journal) -> None:
        self._journal = journal
        whole = [file for file in snapshot.files.values() if file.problem is None]
        self._total = sum(_size(files[0]) for files in _by_path(whole).values())
        todo = _by_path([file for file in whole if not file.hashed])
        self._known = self._total - sum(_size(files[0]) for files in todo.values())
        # The largest last in the list are taken first, so that no thread is left with one at the end.
        self._todo = sorted(todo.values(), key=lambda files: _size(files[0]))
        self._done: list[int] = []
        self._threads: list[threading.Thread] = []

    def begin(self, threads: int) -> None:
        """Hash on so many threads; hashlib and read let go of the interpreter while they work."""
        self._done = [0] * threads
        self._threads = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def goes_on(self, wait_s: float) -> bool:
        """Wait, and say whether anything is left to do."""
        for thread in self._threads:
            if thread.is_alive():
                thread.join(wait_s)
                return any(thread.is_alive() for thread in self._threads)
        return False

    def progress(self) -> dict[str, int]:
        """In bytes."""
        return {"total_bytes": self._total, "known_bytes": self._known, "done_bytes": self._known + sum(self._done)}

    def _work(self, number: int) -> None:
        buffer = memoryview(bytearray(CHUNK))
        while self._todo:
            try:
                first, *others = self._todo.pop()
            except IndexError:  # another thread was faster
                return
            first.judge(lambda file=first: self._hash(file, number, buffer))  # type: ignore[misc]  # mypy infers no type for a lambda's default
            for file in others:
                file.digests, file.hashed = first.digests, first.hashed
                file.problem, file.detail = first.problem, first.detail

    def _hash(self, file: File, number: int, buffer: memoryview) -> None:
        size, blob = _size(file), file.blob or ""
        kinds = {DIGITS.get(len(blob), "sha256"), *(("sha1", "sha256") if size < BOTH_BELOW else ())}
        hashes: dict[str, Any] = {kind: hashlib.new(kind, usedforsecurity=False) for kind in kinds}
        if "sha1" in hashes:
            hashes["sha1"].update(b"blob %d\0" % size)  # git's hash of a file
        with Steady(file.path) as opened:
            if file.status is None or stamp(opened.status) != stamp(file.status):
                raise Faulty("changed", "changed while the snapshot was read")
            position = 0
            while count := opened.file.readinto(buffer):
                for each in hashes.values():
                    each.update(buffer[:count])
                position += count
                self._done[number] += count
                if position % FORGET < count:
                    _forget(opened.file.fileno(), position)
            _forget(opened.file.fileno(), position)
        file.digests, file.hashed = {kind: each.hexdigest() for kind, each in hashes.items()}, True
        self._journal.keep(file)


def _forget(descriptor: int, position: int) -> None:
    """Let the kernel drop what was read: the memory is the GPU's too, and a full page cache has frozen boots there."""
    if sys.platform == "linux":
        start = max(position - 2 * FORGET, 0)
        os.posix_fadvise(descriptor, start, position - start, os.POSIX_FADV_DONTNEED)


def _by_path(files: list[File]) -> dict[str, list[File]]:
    """Files of one content, which several names may lead to, together."""
    found: dict[str, list[File]] = {}
    for file in files:
        found.setdefault(file.path, []).append(file)
    return found


def _size(file: File) -> int:
    return file.status.st_size if file.status is not None else 0


if __name__ == "__main__":
    serve(main)
