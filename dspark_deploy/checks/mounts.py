"""What the container mounts: there, of the right kind, on a local disk with room."""

from __future__ import annotations

from collections.abc import Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, doubtful, fine
from dspark_deploy.checks.memory import gib
from dspark_deploy.facts.node import NodeFacts

LEAST_FREE = 2**29  # bytes: with less, not even a container can be made, nor a log kept
LITTLE_FREE = 2 * 2**30  # bytes: the compile caches of one family
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.rclone")


def _sources(case: Case) -> Iterator[Verdict]:
    """Not every compose honours create_host_path: false, so a missing source is refused here."""
    for node, known in case.facts.items():
        kinds = {fact.path: fact.kind for fact in known.paths}
        for folder in case.folders(node):
            kind = kinds.get(folder, "absent")
            if kind == "directory":
                yield fine(f"{node}: {folder} is there", node)
                continue
            what = {"absent": "does not exist", "unreadable": "can't be read"}.get(
                kind, f"is a {kind}, not a directory"
            )
            remedy = f"put the model cache there, or set hf_home of {node} in the inventory to where it lies"
            yield bad(f"{node}: {folder} {what}", remedy, node)


def _rdma(case: Case) -> Iterator[Verdict]:
    if case.workload is not None and not case.workload.family.rdma:
        return
    for node, known in case.facts.items():
        if known.rdma_devices:
            yield fine(f"{node}: /dev/infiniband holds a device", node)
        else:
            remedy = f"on {node}: sudo modprobe ib_uverbs mlx5_ib"
            yield bad(f"{node}: /dev/infiniband holds no device", remedy, node)


def _space(case: Case) -> Iterator[Verdict]:
    for node, known in case.facts.items():
        for what, free in dict.fromkeys(_disks(case, node, known)):
            message = f"{node}: {gib(free)} are free for {what}"
            remedy = f"on {node}: free some (docker system df; du -xh --max-depth=2 /)"
            if free < LEAST_FREE:
                yield bad(message, remedy, node)
            elif free < LITTLE_FREE:
                yield doubtful(message, remedy, node)
            else:
                yield fine(message, node)


def _disks(case: Case, node: str, known: NodeFacts) -> Iterator[tuple[str, int]]:
    """What is written to on a node, each disk once as far as its free space tells."""
    found = [(fact.path, fact.free_bytes) for fact in known.paths if fact.path in case.folders(node)]
    found.append((f"Docker ({known.docker.root})", known.docker.root_free_bytes))
    seen: set[int] = set()
    for what, free in found:
        if free is not None and free not in seen:
            seen.add(free)
            yield what, free


def _filesystem(case: Case) -> Iterator[Verdict]:
    for node, known in case.facts.items():
        for fact in known.paths:
            if fact.path in case.folders(node) and fact.filesystem in REMOTE:
                message = f"{node}: {fact.path} lies on {fact.filesystem}: a rank may start before it is mounted"
                yield bad(message, f"copy the model to a local disk of {node} and set hf_home to it", node)


CHECKS = (
    Check("mount-source", "disk", "fail", ("F24", "F71"), _sources),
    Check("disk-free", "disk", "fail", ("F16",), _space),
    Check("cache-filesystem", "disk", "warn", ("F86",), _filesystem),
    Check("rdma-device", "fabric", "fail", ("F51",), _rdma),
)
