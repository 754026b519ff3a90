"""How the cache checks name things: models, sizes, lists of files, and what to type."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dspark_deploy.facts.snapshot import Snapshot, SnapshotFile
from dspark_deploy.model import Model

MOST_LISTED = 20
MOST_REMOVED = 8  # files in one command that removes them
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
# Upstream's own values: the hub client's 10 s end the transfer of a shard on a slow link (F26).
DOWNLOAD = "HF_HUB_OFFLINE=0 HF_HUB_DOWNLOAD_TIMEOUT=120 HF_HUB_ETAG_TIMEOUT=30 hf download"


@dataclass(frozen=True, slots=True)
class Where:
    """What is known of one node's cache beside what lies in it."""

    setting: str  # the inventory's key that says which cache is mounted: `worker.hf_home`
    address: str | None = None  # on the fabric; None: not known yet


@dataclass(frozen=True, slots=True)
class Naming:
    """A model, the pair's caches, and how to speak of them."""

    model: Model
    where: Mapping[str, Where]
    whole: Mapping[str, Snapshot] = field(default_factory=dict)  # nodes that have it complete, to copy from

    @property
    def name(self) -> str:
        """The model as it is asked for."""
        revision = f" at {short(self.model.revision)}" if self.model.revision else ""
        return f"{self.model.id or self.model.directory}{revision}"

    def fetch(self, snapshot: Snapshot, *, checksum: bool = False) -> str:
        """How to complete what a node has: from the other node where that has all of it, else from the hub."""
        source = next((each for node, each in self.whole.items() if node != snapshot.node), None)
        if source is not None:
            return f"on {snapshot.node}: {self._copy(source, snapshot, checksum=checksum)}"
        if self.model.id is None:
            return f"copy the checkpoint to {snapshot.root} on {snapshot.node}"
        revision = f" --revision {self.model.revision}" if self.model.revision else ""
        return f"on {snapshot.node}: {DOWNLOAD} {self.model.id}{revision} --cache-dir {shlex.quote(snapshot.hub)}"

    def refetch(self, snapshot: Snapshot, files: Sequence[SnapshotFile]) -> str:
        """The same for files that are there and wrong: a hub client takes what is there for whole."""
        words = [shlex.quote(path) for path in dict.fromkeys(file.path for file in files)]
        more = f" and the other {len(words) - MOST_REMOVED}" if len(words) > MOST_REMOVED else ""
        remove = f"on {snapshot.node}: rm -- {' '.join(words[:MOST_REMOVED])}{more}"
        return f"{remove}; then {self.fetch(snapshot)}"

    def _copy(self, source: Snapshot, target: Snapshot, *, checksum: bool) -> str:
        """Over the fabric, links as links. What transfers left behind stays behind."""
        address = self.where[source.node].address or f"ADDRESS-OF-{source.node.upper()}"
        options = f"-a{'c' if checksum else ''} --mkpath --exclude='*.incomplete' --exclude=trees/"
        origin = shlex.quote(f"{source.user}@{address}:{source.root}/")
        return f"rsync {options} {origin} {shlex.quote(f'{target.root}/')}"


def listed(texts: Iterable[str]) -> str:
    """As many as one can take in, and how many more there are."""
    all_of_them = list(texts)
    more = len(all_of_them) - MOST_LISTED
    return ", ".join(all_of_them[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def size_text(size: int | None) -> str:
    """Bytes as a person reads them, in powers of 1024: a checkpoint's 155 GB are really GiB."""
    if size is None:
        return "an unknown number of bytes"
    power = min((size.bit_length() - 1) // 10, len(UNITS) - 1) if size else 0
    return f"{size} bytes" if power == 0 else f"{size / 1024**power:.2f} {UNITS[power]}"


def short(revision: str | None) -> str:
    """A commit as people say it."""
    return (revision or "")[:8]
