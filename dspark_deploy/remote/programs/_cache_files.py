"""Single files of a snapshot: read steadily, and judged by what they should be, without reading a shard's data."""

from __future__ import annotations

import hashlib
import json
import os
import pwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from io import FileIO
    from typing import Any

LARGEST_READ = 64 << 20  # bytes; a tokenizer has 8 MiB
LARGEST_HEADER = 100_000_000  # bytes; what the safetensors library itself accepts
LENGTH_SIZE = 8  # bytes of a safetensors file that say how long its header is
ENCODE = "encode_messages"  # what vLLM calls of an encoder


class Faulty(Exception):
    """A file that can't be used as it is. `problem` is one of facts/snapshot.py's words."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


class File:
    """One name of a snapshot. `path` is where it lies on the node, links followed as far as they lead."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.required = False
        self.status: os.stat_result | None = None
        self.problem: str | None = None
        self.detail = ""
        self.doubt = ""
        self.digests: dict[str, str] = {}  # of its content, where all of it was read: sha256, sha1 (git's, of a blob)
        self.hashed = False  # the digests are `hash_cache`'s: they count against the blob's name

    @property
    def blob(self) -> str | None:
        """The name of the blob that it is; None for a real file in the snapshot's own folder."""
        folder, _, name = self.path.rpartition("/")
        return name if folder.endswith("/blobs") else None

    def blame(self, problem: str, detail: str = "") -> None:
        """Keep the first thing that is wrong with it."""
        if self.problem is None:
            self.problem, self.detail = problem, detail

    def judge(self, look: Callable[[], None]) -> None:
        """Look into it, unless it is at fault already; what goes wrong then is its fault."""
        if self.problem is not None:
            return
        try:
            look()
        except Faulty as fault:
            self.blame(fault.problem, fault.detail)
        except FileNotFoundError:
            self.blame("changed", "went away while it was read")
        except OSError as error:
            self.blame("unreadable", error.strerror or str(error))

    def read_small(self) -> bytes:
        """Its whole content, which has to be small. Raises Faulty or OSError."""
        with Steady(self.path) as opened:
            if opened.size > LARGEST_READ:
                raise Faulty("damaged", f"is {opened.size} bytes long, which no file of its kind is")
            content = opened.read(opened.size)
            if not content.strip():
                raise Faulty("damaged", "is empty")
        sha1 = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
        self.digests = {"sha256": hashlib.sha256(content).hexdigest(), "sha1": sha1.hexdigest()}
        return content

    def document(self) -> dict[str, Any]:
        """What the caller gets of it."""
        return {
            "name": printable(self.name),
            "path": printable(self.path),
            "size": None if self.status is None else self.status.st_size,
            "blob": self.blob,
            "required": self.required,
            "problem": self.problem,
            "detail": self.detail,
            "doubt": self.doubt,
            "digests": self.digests,
            "hashed": self.hashed,
        }


class Steady:
    """A file open for reading that has to stay as it is meanwhile. Raises Faulty at the end where it did not."""

    def __init__(self, path: str) -> None:
        self.file: FileIO = open(path, "rb", buffering=0)  # noqa: SIM115  closed at the end of the with block
        self.status = os.fstat(self.file.fileno())
        self.size = self.status.st_size

    def __enter__(self) -> Steady:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        after = os.fstat(self.file.fileno())
        self.file.close()
        if kind in {None, Faulty} and stamp(after) != stamp(self.status):
            raise Faulty("changed", "changed while it was read")

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at the end of the file."""
        data = b""
        while len(data) < size and (more := self.file.read(size - len(data))):
            data += more
        return data


def stamp(status: os.stat_result) -> tuple[int, int]:
    """What changes with a file's content."""
    return status.st_size, status.st_mtime_ns


def printable(name: str) -> str:
    """A name of a file whose bytes may be no UTF-8, as text."""
    return name.encode(errors="backslashreplace").decode()


def user_name(uid: int) -> str:
    """A user's name, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def parse_object(content: bytes) -> dict[str, Any]:
    """JSON that has to be an object. Raises Faulty."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Faulty("damaged", f"is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Faulty("damaged", "is JSON, but no object")
    return found


def judge_encoder(content: bytes) -> str:
    """What makes it doubtful, or nothing. Raises Faulty where it is no Python."""
    try:
        code = compile(content, "encoding_dsv4.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Faulty("damaged", f"is no Python: {error}") from error
    return "" if ENCODE in code.co_names else f"has no {ENCODE}, which vLLM calls"


def judge_shard(path: str, tensors: Collection[str]) -> str:
    """What makes a shard doubtful, or nothing; `tensors` are those that the index puts into it.

    Raises Faulty where its size is not what its header says, or OSError.
    """
    with Steady(path) as opened:
        size = opened.size
        length = int.from_bytes(opened.read(LENGTH_SIZE), "little")
        if size < LENGTH_SIZE or length > min(size - LENGTH_SIZE, LARGEST_HEADER):
            raise Faulty("wrong-size", f"is {size} bytes long, with a header that is said to have {length}")
        described, data_size = _described(opened.read(length))
        if LENGTH_SIZE + length + data_size != size:
            raise Faulty("wrong-size", f"is {size} bytes long, its header says {LENGTH_SIZE + length + data_size}")
    absent = [name for name in tensors if name not in described]
    return f"lacks {len(absent)} tensors that the index puts into it, {absent[0]} for one" if absent else ""


def _described(header: bytes) -> tuple[dict[str, Any], int]:
    """The tensors of a safetensors header, and how many bytes of data they take."""
    try:
        found = json.loads(header)
        found.pop("__metadata__", None)
        return found, max((int(tensor["data_offsets"][1]) for tensor in found.values()), default=0)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise Faulty("wrong-size", "has a header that is none of safetensors") from error
