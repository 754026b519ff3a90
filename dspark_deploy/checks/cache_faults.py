"""What is wrong with one node's snapshot, in words, and what to type. One fault a kind, with all files it concerns."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from dspark_deploy.checks.cache_words import Naming, listed, short, size_text
from dspark_deploy.facts.snapshot import Problem, Snapshot, SnapshotFile

Verdict = Literal[
    "unknown",  # the node could not be asked
    "absent",  # nothing of the model
    "other-revision",  # the model, and not the revision that is served
    "downloading",  # not whole, and something still writes
    "link-leaves-mount",  # whole on the node, broken in the container
    "unreadable",  # there, and nobody can tell whether it is whole
    "partial",  # some of the files
    "wrong-size",  # shards that are cut short or padded
    "corrupt",  # content that is not what it should be
    "nodes-differ",  # complete on each, and not the same
    "complete",
]
ORDER: tuple[Verdict, ...] = get_args(Verdict)  # of two faults the one that has to be mended first is the verdict

# Rows of the failure table that each verdict stands for.
COVERED: Mapping[Verdict, tuple[str, ...]] = {
    "absent": ("F16", "F24", "F28"),
    "other-revision": ("F16", "F17", "F27"),
    "downloading": ("F16",),
    "link-leaves-mount": ("F22",),
    "partial": ("F16", "F21"),
    "wrong-size": ("F21",),
    "corrupt": ("F21",),
    "nodes-differ": ("F20",),
}
VERDICT_OF: Mapping[Problem, Verdict] = {
    "changed": "downloading",
    "leaves-mount": "link-leaves-mount",
    "unreadable": "unreadable",
    "missing": "partial",
    "dangling": "partial",
    "wrong-size": "wrong-size",
    "damaged": "corrupt",
}
ENCODER = "encoding/encoding_dsv4.py"
NO_ENCODER = "F23"
UNFINISHED: tuple[Verdict, ...] = ("absent", "other-revision", "partial")  # what a running transfer may still mend
RECENT_S = 300.0  # a running transfer writes more often, and waits no longer than 120 s for the hub


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault, which the verdict names."""

    verdict: Verdict
    message: str
    remedy: str
    failure_ids: tuple[str, ...] = ()


def faults_of(naming: Naming, snapshot: Snapshot) -> tuple[Fault, ...]:
    """Everything that keeps the node from serving the model offline; empty where it is complete."""
    found = (*_place(naming, snapshot), *_ref(naming, snapshot), *_files(naming, snapshot), *_sum(naming, snapshot))
    if not _transfer_runs(snapshot):
        return found
    return tuple(_running(naming, snapshot, fault) if fault.verdict in UNFINISHED else fault for fault in found)


# --- nothing to look into ---------------------------------------------------------------------------------------


def _place(naming: Naming, snapshot: Snapshot) -> Iterator[Fault]:
    """No folder with the revision's files, or none that the container can reach."""
    if snapshot.unreadable:
        remedy = _let_read(snapshot, snapshot.unreadable)
        yield _fault(snapshot, "unreadable", f"can't be read: {snapshot.unreadable}", remedy)
    elif snapshot.leaves is not None and snapshot.leaves.real is not None:
        yield _outward(snapshot, snapshot.leaves.link, snapshot.leaves.target, snapshot.leaves.real)
    elif snapshot.folder is None and not snapshot.revisions:
        yield from _absent(naming, snapshot)
    elif snapshot.folder is None and (naming.model.revision is not None or not any(ref_faults(naming, snapshot))):
        has = listed(map(short, snapshot.revisions))
        message = f"lacks snapshot {short(snapshot.revision)} of {naming.model.id} (has {has})"
        yield _fault(snapshot, "other-revision", message, naming.fetch(snapshot))


def _absent(naming: Naming, snapshot: Snapshot) -> Iterator[Fault]:
    setting = naming.where[snapshot.node].setting
    place = snapshot.root if naming.model.id is None else snapshot.hub
    message = f"nothing of {naming.name} lies in {place} ({setting}), where the container looks"
    remedy = naming.fetch(snapshot)
    if snapshot.elsewhere:
        other = snapshot.elsewhere[0]
        message += f"; it lies in {other.path} ({other.setting} there)"
        remedy = f"set hub_cache: {other.path} under {snapshot.node} in the inventory; nothing has to be fetched"
    if snapshot.leaves is not None:
        message += f"; {snapshot.leaves.link} is a link to {snapshot.leaves.target}, which is not there"
    yield _fault(snapshot, "absent", message, remedy)


def _outward(snapshot: Snapshot, link: str, target: str, real: str) -> Fault:
    message = f"{link} is a link to {target}, which the container does not see"
    remedy = f"on {snapshot.node}: rm -- {shlex.quote(link)} && mv -- {shlex.quote(real)} {shlex.quote(link)}"
    if link == snapshot.hub:
        remedy = f"set hub_cache: {real} under {snapshot.node} in the inventory, so that it is mounted"
    return _fault(snapshot, "link-leaves-mount", message, remedy)


# --- which revision ---------------------------------------------------------------------------------------------


def _ref(naming: Naming, snapshot: Snapshot) -> Iterator[Fault]:
    """Without a pinned revision, refs/main has to name a snapshot exactly."""
    if naming.model.id is None or naming.model.revision is not None or not snapshot.revisions:
        return
    for message, remedy, failures in ref_faults(naming, snapshot):
        yield Fault("other-revision", f"{snapshot.node}: {message}", remedy, failures)


def ref_faults(naming: Naming, snapshot: Snapshot) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """What is wrong with refs/main, and what to type. A snapshot that was fetched by its commit alone has none."""
    ref, path = snapshot.ref, f"{snapshot.root}/refs/main"
    if ref is None:
        if naming.model.revision is None:
            what = f"{path} is not there, and without a revision nothing else says which snapshot is meant"
            yield what, _write_ref(naming, snapshot, path), ("F18",)
        return
    meant = ref.strip()
    if not meant:
        what = f"{path} is empty"
    elif len(meant) != 40 or not set(meant) <= set("0123456789abcdef"):  # noqa: PLR2004  digits of a commit
        what = f"{path} says {meant!r}, which is no commit of 40 digits"
    elif meant != ref:
        what = f"{path} says {ref!r}: a hub client takes the white space for part of the name"
    elif meant not in snapshot.revisions:
        there = listed(map(short, snapshot.revisions))
        what = f"{path} names {short(meant)}, whose snapshot is not there (there is {there})"
    else:
        return
    yield what, _write_ref(naming, snapshot, path), ("F19",) if meant and meant != ref else ("F18",)


def _write_ref(naming: Naming, snapshot: Snapshot, path: str) -> str:
    """With printf: echo would write the newline that is at fault."""
    meant = [naming.model.revision, (snapshot.ref or "").strip(), *snapshot.revisions]
    good = next((revision for revision in meant if revision in snapshot.revisions), None)
    if good is None or (len(snapshot.revisions) > 1 and good not in meant[:2]):
        return f"on {snapshot.node}: write the commit that is meant: printf %s COMMIT > {shlex.quote(path)}"
    return f"on {snapshot.node}: printf %s {good} > {shlex.quote(path)}"


# --- the files --------------------------------------------------------------------------------------------------


def _files(naming: Naming, snapshot: Snapshot) -> Iterator[Fault]:
    """One fault a verdict, with the files that it concerns."""
    by_verdict: dict[Verdict, list[SnapshotFile]] = {}
    for file in snapshot.files:
        if file.matters and file.problem is not None:
            by_verdict.setdefault(VERDICT_OF[file.problem], []).append(file)
        elif file.corrupt:
            by_verdict.setdefault("corrupt", []).append(file)
    for verdict, files in by_verdict.items():
        encoder = (NO_ENCODER,) if any(file.name == ENCODER for file in files) else ()
        yield _fault(
            snapshot, verdict, _what(naming, snapshot, verdict, files), _mend(naming, snapshot, verdict, files), encoder
        )


def _what(naming: Naming, snapshot: Snapshot, verdict: Verdict, files: Sequence[SnapshotFile]) -> str:
    if verdict != "partial":
        told = listed(f"{file.name} {_detail(file)}" for file in files)
        return f"{naming.name}: {told} ({_where(snapshot, files)})"
    counts = []
    for problem in ("missing", "dangling"):
        names = [file.name for file in files if file.problem == problem]
        if names:
            counts.append(f"{len(names)} of {len(snapshot.files)} files {problem}: {listed(names)}")
    return f"{naming.name} is partial: {'; '.join(counts)} ({snapshot.folder})"


def _detail(file: SnapshotFile) -> str:
    if file.problem == "leaves-mount":
        return f"is reached by a link that the container can't follow: {file.detail}"
    if file.problem == "unreadable":
        return f"can't be read: {file.detail}"
    return file.detail or "has another content than its name says"


def _where(snapshot: Snapshot, files: Sequence[SnapshotFile]) -> str:
    return files[0].path if len(files) == 1 else str(snapshot.folder)


def _mend(naming: Naming, snapshot: Snapshot, verdict: Verdict, files: Sequence[SnapshotFile]) -> str:
    node, folder = snapshot.node, shlex.quote(str(snapshot.folder))
    match verdict:
        case "downloading":
            return "wait until nothing writes there any more, then run the command again"
        case "unreadable":
            return _let_read(snapshot, " ".join(file.detail for file in files))
        case "link-leaves-mount" if all(file.path.startswith(f"{snapshot.root}/") for file in files):
            relink = """find . -type l -exec sh -c 'ln -srf -- "$(readlink -f "$1")" "$1"' - {} \\;"""
            return f"on {node}: cd {folder} && {relink} (makes the links relative)"
        case "link-leaves-mount":
            copy = f"cp -rL {folder} {folder}.whole && rm -r {folder} && mv {folder}.whole {folder}"
            return f"on {node}: {copy} (real files instead of links)"
        case "wrong-size" | "corrupt":
            return naming.refetch(snapshot, files)
        case _:
            return naming.fetch(snapshot)


def _let_read(snapshot: Snapshot, said: str) -> str:
    """Ownership can be mended by command; what a disk can't read only looked into."""
    if "belongs to" in said or "Permission denied" in said:
        return f"on {snapshot.node}: sudo chown -R {snapshot.user}: {shlex.quote(snapshot.root)}"
    return f"on {snapshot.node}: sudo dmesg | tail shows why the disk can't read it"


def _sum(naming: Naming, snapshot: Snapshot) -> Iterator[Fault]:
    """The index says how many bytes of tensors there are; the files add their headers."""
    sizes = [file.size for file in snapshot.files if file.name in snapshot.shards and file.problem is None]
    held = sum(size for size in sizes if size is not None)
    if snapshot.total_bytes is not None and len(sizes) == len(snapshot.shards) and held < snapshot.total_bytes:
        message = f"{naming.name}: its {len(sizes)} shards hold {held} bytes, its index says {snapshot.total_bytes}"
        yield _fault(snapshot, "wrong-size", f"{message} ({snapshot.folder})", naming.fetch(snapshot))


# --- a transfer that runs ---------------------------------------------------------------------------------------


def _transfer_runs(snapshot: Snapshot) -> bool:
    return snapshot.unfinished is not None and snapshot.unfinished.age_s < RECENT_S


def _running(naming: Naming, snapshot: Snapshot, fault: Fault) -> Fault:
    transfer = snapshot.unfinished
    if transfer is None:
        return fault
    sort = f"{transfer.count} unfinished files ({size_text(transfer.bytes)}) in {transfer.folder}"
    message = f"{naming.name} is being downloaded: {sort}, touched {transfer.age_s:.0f} s ago"
    remedy = f"wait until it has ended, then run the command again; if nothing runs there: {fault.remedy}"
    so_far = fault.message.removeprefix(f"{snapshot.node}: ")
    return _fault(snapshot, "downloading", f"{message}; so far {so_far}", remedy)


def _fault(snapshot: Snapshot, verdict: Verdict, message: str, remedy: str, failures: Sequence[str] = ()) -> Fault:
    return Fault(verdict, f"{snapshot.node}: {message}", remedy, (*COVERED.get(verdict, ()), *failures))
