"""Whether two complete snapshots are the same one."""

from __future__ import annotations

from collections.abc import Iterator

from dspark_deploy.checks.cache_faults import COVERED
from dspark_deploy.checks.cache_words import Naming, listed, short
from dspark_deploy.checks.finding import Finding
from dspark_deploy.facts.snapshot import Snapshot, SnapshotFile

ID = "cache-same"


def check_same(naming: Naming) -> Iterator[Finding]:
    """Compare head and worker, both complete: names, sizes, and content as far as it is known.

    A large blob's name is the hash of its content, so that equal names are equal content without a byte read.
    """
    head, worker = naming.whole["head"], naming.whole["worker"]
    if head.revision != worker.revision:
        message = f"head would serve {short(head.revision)} of {naming.model.id}, worker {short(worker.revision)}"
        remedy = f"pin a revision in the model's file, or make them one: {naming.fetch(worker)}"
        yield Finding(ID, "fail", f"{message}: refs/main differs", None, remedy, COVERED["nodes-differ"])
        return
    differences = dict(_differences(head, worker))
    matter = {name: what for name, what in differences.items() if _matters(name, head, worker)}
    if matter:
        told = listed(f"{name} ({what})" for name, what in matter.items())
        message = f"the nodes hold different files of {naming.name}: {told}"
        only_worker = all(what == "only on worker" for what in matter.values())
        remedy = naming.fetch(head if only_worker else worker, checksum="content" in matter.values())
        yield Finding(ID, "fail", message, None, remedy, COVERED["nodes-differ"])
        return
    compared = "content" if all(_identity_known(head, worker)) else "names and sizes; --deep compares contents"
    yield Finding(ID, "ok", f"both nodes hold the same {naming.name} (compared: {compared})")
    if differences:
        message = f"files that no engine reads differ: {listed(differences)}"
        yield Finding("cache-other-files", "skip", message)


def _differences(head: Snapshot, worker: Snapshot) -> Iterator[tuple[str, str]]:
    ours, theirs = _by_name(head), _by_name(worker)
    for name in sorted({*ours, *theirs}):
        if name not in theirs:
            yield name, "only on head"
        elif name not in ours:
            yield name, "only on worker"
        elif ours[name].size != theirs[name].size:
            yield name, f"{ours[name].size} and {theirs[name].size} bytes"
        elif _contents_differ(ours[name], theirs[name]):
            yield name, "content"


def _contents_differ(one: SnapshotFile, other: SnapshotFile) -> bool:
    """By every hash that both are known by. Where there is none, sizes have to do."""
    return any(other.identity.get(kind, digest) != digest for kind, digest in one.identity.items())


def _identity_known(head: Snapshot, worker: Snapshot) -> Iterator[bool]:
    theirs = _by_name(worker)
    for name, file in _by_name(head).items():
        if file.matters and name in theirs:
            yield not file.identity.keys().isdisjoint(theirs[name].identity)


def _matters(name: str, head: Snapshot, worker: Snapshot) -> bool:
    return any(file.name == name and file.matters for snapshot in (head, worker) for file in snapshot.files)


def _by_name(snapshot: Snapshot) -> dict[str, SnapshotFile]:
    return {file.name: file for file in snapshot.files if file.problem is None}
