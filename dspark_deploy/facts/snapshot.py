"""One model in a node's cache as its container will find it: what `verify_cache` and `hash_cache` read there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Problem = Literal[
    "missing",  # its name is not there
    "dangling",  # a link whose target is not there
    "leaves-mount",  # a link whose target is there, and which the container can't follow
    "unreadable",  # the SSH user may not read it, or the disk can't
    "damaged",  # a small file that can't be parsed
    "wrong-size",  # a shard that is not as long as its header says
    "changed",  # it changed while it was read
]
READ_SUFFIXES = (".json", ".py", ".jinja", ".model")  # what an engine may read beside the required files
HASH_OF_NAME = {40: "sha1", 64: "sha256"}  # a blob's name is git's hash of a small file, or the sha256 of a large one


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """One name of the snapshot."""

    name: str  # relative to the snapshot's folder
    path: str  # on the node, links followed as far as they lead
    size: int | None  # bytes; None: can't be told
    blob: str | None  # the blob that the name links to; None: a real file
    required: bool  # the engine does not start, or answers wrongly, without it
    problem: Problem | None
    detail: str  # what exactly the problem is
    doubt: str  # what looks wrong and stops nothing
    digests: Mapping[str, str]  # sha256 and sha1 (git's, of a blob) of the content, where it was read
    hashed: bool  # the digests come from hashing every file, and count against the blob's name

    @property
    def matters(self) -> bool:
        """Whether an engine may read it. Nobody serves a README."""
        return self.required or self.name.endswith(READ_SUFFIXES)

    @property
    def corrupt(self) -> bool:
        """Its content has another hash than the one it is named by."""
        return self.hashed and any(self.digests.get(kind, name) != name for kind, name in self._claim.items())

    @property
    def identity(self) -> Mapping[str, str]:
        """The hashes of its content: as read, else as its blob's name claims. Empty where nothing tells."""
        return self.digests or self._claim

    @property
    def _claim(self) -> Mapping[str, str]:
        kind = HASH_OF_NAME.get(len(self.blob or ""))
        return {kind: self.blob} if kind and self.blob else {}


@dataclass(frozen=True, slots=True)
class Outward:
    """A link above the files that leads out of what the container sees."""

    link: str
    target: str  # what the link says
    real: str | None  # where it leads on the node; None: nowhere


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Files of transfers that were cut, or that run."""

    folder: str
    count: int
    bytes: int
    age_s: float  # since anything of them was touched last, by the node's clock


@dataclass(frozen=True, slots=True)
class OwnedByOthers:
    """Files and folders that the SSH user can't write, so that a repair would fail."""

    count: int
    unreadable: int  # of them
    owners: tuple[str, ...]
    example: str
    folders: tuple[str, ...]  # where they lie


@dataclass(frozen=True, slots=True)
class Place:
    """A hub cache other than the one that is mounted, and the setting that names it on the node."""

    setting: str
    path: str


@dataclass(frozen=True, slots=True)
class Hashed:
    """When every file of the snapshot was last hashed."""

    at: str  # RFC 3339, the node's clock
    verdict: str  # complete, corrupt or partial
    unchanged: bool  # names, sizes and times are still the same


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One model on one node. Nothing of it is there where `folder` is None."""

    node: str
    user: str
    hub: str  # the hub cache that the container will see
    root: str  # the model's own folder
    folder: str | None  # the folder with the files that are served
    revision: str | None  # the pinned one, else what refs/main means; None: a plain directory, or no ref
    revisions: tuple[str, ...]  # those that have a folder
    ref: str | None  # refs/main as it is, white space included; None: there is none
    files: tuple[SnapshotFile, ...]
    shards: tuple[str, ...]  # files that the index names
    total_bytes: int | None  # of all tensors, by the index
    architectures: tuple[str, ...]
    draft_block_size: int | None
    leaves: Outward | None
    unreadable: str  # why the folder could not be read
    unfinished: Unfinished | None
    owned_by_others: OwnedByOthers | None
    elsewhere: tuple[Place, ...]  # looked for only where nothing is in its place
    free_bytes: int | None
    hashed: Hashed | None
    not_kept: str = ""  # why what was hashed could not be written down

    @property
    def bytes(self) -> int:
        """Of all files that can be read."""
        return sum(file.size or 0 for file in self.files)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far hashing is on one node, in bytes."""

    total_bytes: int
    known_bytes: int  # of the done ones, hashed by earlier runs
    done_bytes: int


def parse_snapshot(node: str, document: Mapping[str, Any]) -> Snapshot:
    """Read the document of remote/programs/_cache_snapshot.py. `node` is "head" or "worker"."""
    return Snapshot(
        node=node,
        **{name: document[name] for name in ("user", "hub", "root", "folder", "revision", "ref", "unreadable")},
        revisions=tuple(document["revisions"]),
        files=tuple(SnapshotFile(**file) for file in document["files"]),
        shards=tuple(document["shards"]),
        total_bytes=document["total_bytes"],
        architectures=_texts(document["architectures"]),
        draft_block_size=_number(document["draft_block_size"]),
        leaves=Outward(**document["leaves"]) if document["leaves"] else None,
        unfinished=Unfinished(**document["unfinished"]) if document["unfinished"] else None,
        owned_by_others=_owned_by_others(document["owned_by_others"]),
        elsewhere=tuple(Place(**place) for place in document["elsewhere"]),
        free_bytes=document["free_bytes"],
        hashed=Hashed(**document["hashed"]) if document["hashed"] else None,
        not_kept=document["not_kept"],
    )


def parse_progress(document: Mapping[str, Any]) -> Progress:
    """Read a progress document of remote/programs/hash_cache.py."""
    return Progress(**document)


def _owned_by_others(found: Mapping[str, Any] | None) -> OwnedByOthers | None:
    if found is None:
        return None
    return OwnedByOthers(**{**found, "owners": tuple(found["owners"]), "folders": tuple(found["folders"])})


def _texts(found: object) -> tuple[str, ...]:
    """A list of texts out of somebody's config.json; empty where it is anything else."""
    return tuple(text for text in found if isinstance(text, str)) if isinstance(found, list) else ()


def _number(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None
