"""Walk folders and name the files whose text could be part of a prompt. Nothing is opened but .gitignore files."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dspark_deploy.capacity.skips import (
    BINARY_EXTENSIONS,
    SKIPPED_ENDS,
    SKIPPED_FOLDERS,
    SKIPPED_NAMES,
    IgnoreFile,
)

NEVER_WAITS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # to open with: a pipe without a writer, too
_IGNORE_FILE = 2**20  # bytes of a .gitignore that are read

Ignores = tuple[tuple[IgnoreFile, int], ...]  # the innermost first, each with where the paths below its folder begin


@dataclass(slots=True)
class Walk:
    """One walk: what it left out, and how much of the tree it has behind it.

    `share` goes to 1: every named path stands for an equal part, and every entry of a folder for an equal part of that.
    What is handed on counts as not done yet.
    """

    extensions: frozenset[str] = frozenset()  # lower case, without the dot; empty: all
    everything: bool = False  # also what .gitignore and the skip list leave out
    skipped: Counter[str] = field(default_factory=Counter)  # reason -> files or folders
    share: float = 0.0

    def files(self, named: str, share: float) -> Iterator[tuple[str, float]]:
        """The files below a named path, or the file it is, each with its share of the whole.

        A path that is named is taken whatever its name is. Links inside a tree are not followed: they lead to what is
        met anyway, or out of the tree, or in a circle.
        """
        if not os.path.isdir(named):  # noqa: PTH112  text throughout: a path object a file costs as much as reading it
            yield named, share
            return
        waiting = [_Folder(named, share, () if self.everything else _outer_ignores(named))]
        while waiting:
            yield from self._folder(waiting.pop(), waiting)

    def _folder(self, folder: _Folder, waiting: list[_Folder]) -> Iterator[tuple[str, float]]:
        try:
            with os.scandir(folder.path) as found:
                entries = list(found)
        except OSError:
            self.skipped["unreadable folders"] += 1
            entries = []
        if not entries:
            self.share += folder.share
            return
        ignores = folder.ignores if self.everything else _with_own(folder, entries)
        share = folder.share / len(entries)
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                if self._wants(entry, ignores):
                    yield entry.path, share
                    continue
            elif entry.is_dir(follow_symlinks=False):
                if self._enters(entry, ignores):
                    waiting.append(_Folder(entry.path, share, ignores))
                    continue
            else:
                self.skipped["links" if entry.is_symlink() else "special files"] += 1
            self.share += share

    def _enters(self, entry: os.DirEntry[str], ignores: Ignores) -> bool:
        if self.everything:
            return True
        if entry.name in SKIPPED_FOLDERS:
            self.skipped["folders on the skip list"] += 1
            return False
        for ignore, start in ignores:
            verdict = ignore.says_of_folder(f"{entry.path[start:]}/")
            if verdict:
                self.skipped["folders that .gitignore names"] += 1
            if verdict is not None:
                return not verdict
        return True

    def _wants(self, entry: os.DirEntry[str], ignores: Ignores) -> bool:
        name = entry.name
        _, dot, end = name.rpartition(".")
        extension = end.lower() if dot else ""
        if self.extensions and extension not in self.extensions:
            self.skipped["other extensions"] += 1
            return False
        if extension in BINARY_EXTENSIONS:
            self.skipped["binary files"] += 1
            return False
        if self.everything:
            return True
        if name in SKIPPED_NAMES or name.endswith(SKIPPED_ENDS):
            self.skipped["lock files and bundles"] += 1
            return False
        for ignore, start in ignores:
            verdict = ignore.says_of_file(entry.path[start:], name)
            if verdict:
                self.skipped["files that .gitignore names"] += 1
            if verdict is not None:
                return not verdict
        return True


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    share: float
    ignores: Ignores  # of the folders above


def _outer_ignores(path: str) -> Ignores:
    """The .gitignore files above a folder, as far as its repository goes; none where it is in no repository."""
    above = [Path(path), *Path(path).parents]
    root = next((number for number, folder in enumerate(above) if (folder / ".git").exists()), 0)
    found = ((_read_ignore(folder / ".gitignore"), _start(str(folder))) for folder in above[1 : root + 1])
    return tuple((ignore, start) for ignore, start in found if ignore is not None)


def _with_own(folder: _Folder, entries: Sequence[os.DirEntry[str]]) -> Ignores:
    """The ignore files that hold in a folder: its own, where it has one, before those above."""
    own = next((entry for entry in entries if entry.name == ".gitignore"), None)
    ignore = own and _read_ignore(Path(own.path))
    return ((ignore, _start(folder.path)), *folder.ignores) if ignore else folder.ignores


def _read_ignore(path: Path) -> IgnoreFile | None:
    """None where there is none that can be read: git, too, goes on without it."""
    try:
        file = os.open(path, NEVER_WAITS)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        return IgnoreFile(os.read(file, _IGNORE_FILE).decode("utf-8-sig", "surrogateescape").splitlines())
    except OSError:
        return None
    finally:
        os.close(file)


def _start(folder: str) -> int:
    """Where the rest of a path begins that lies in `folder`."""
    return len(folder.rstrip("/")) + 1
