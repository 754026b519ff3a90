"""Layers of an image, written with tarfile alone."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

MTIME = 1_750_000_000  # of files that are written here: an equal input gives an equal layer


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer as a tar file. Its identity is the digest of its bytes."""

    path: Path
    digest: str


@dataclass(slots=True)
class Tree:
    """The content of a layer: a path without leading slash -> a file of this machine, bytes, or a link."""

    copies: dict[str, Path] = field(default_factory=dict)
    texts: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def text(self, path: str, content: str | bytes, mode: int = 0o644) -> None:
        """Put a file with this content."""
        self.texts[path] = (content.encode() if isinstance(content, str) else content, mode)

    def write(self, target: Path) -> Layer:
        """Write the tar file. Times of copied files are kept, or python would compile every module again."""
        folders: set[str] = set()
        with tarfile.open(target, "w") as tar:
            for path in sorted({*self.copies, *self.texts, *self.links}):
                for parent in reversed(Path(path).parents[:-1]):
                    if str(parent) not in folders:
                        folders.add(str(parent))
                        tar.addfile(_member(str(parent), tarfile.DIRTYPE, 0o1777 if str(parent) == "tmp" else 0o755))
                self._add(tar, path)
        return Layer(target, _digest(target))

    def _add(self, tar: tarfile.TarFile, path: str) -> None:
        if path in self.links:
            member = _member(path, tarfile.SYMTYPE, 0o777)
            member.linkname = self.links[path]
            tar.addfile(member)
        elif path in self.texts:
            content, mode = self.texts[path]
            member = _member(path, tarfile.REGTYPE, mode)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        else:
            source = self.copies[path]
            member = _member(path, tarfile.REGTYPE, 0o755 if source.stat().st_mode & 0o111 else 0o644)
            member.size = source.stat().st_size
            member.mtime = int(source.stat().st_mtime)
            with source.open("rb") as content_file:
                tar.addfile(member, content_file)


def _member(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime = kind, mode, MTIME
    return member


def add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = _member(name, tarfile.REGTYPE, 0o644)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
