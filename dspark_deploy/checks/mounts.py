"""What the container mounts must exist on its node, as the right kind, before compose is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dspark_deploy.checks.finding import Finding
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.plan.deployment import Deployment, Rank


def mounted_folders(rank: Rank) -> tuple[str, ...]:
    """The folders of its node that a rank's container mounts, absolute."""
    return tuple(str(path) for path in (rank.hf_home, rank.hub_cache) if path is not None)


def check_mounts(deployment: Deployment, facts: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Not every compose honours create_host_path: false, so a missing source is refused here."""
    for rank in deployment.ranks:
        known = facts[rank.node]
        kinds = {fact.path: fact.kind for fact in known.paths}
        for folder in mounted_folders(rank):
            yield _folder(rank.node, folder, kinds.get(folder, "absent"))
        if deployment.family.rdma:
            yield _rdma(rank.node, known)


def _folder(node: str, folder: str, kind: str) -> Finding:
    if kind == "directory":
        return Finding("mount-source", "ok", f"{node}: {folder} is there", node)
    what = {"absent": "does not exist", "unreadable": "can't be read"}.get(kind, f"is a {kind}, not a directory")
    remedy = f"put the model cache there, or set hf_home of {node} in the inventory to where it lies"
    return Finding("mount-source", "fail", f"{node}: {folder} {what}", node, remedy, ("F24", "F71"))


def _rdma(node: str, known: NodeFacts) -> Finding:
    if known.rdma_devices:
        return Finding("rdma-device", "ok", f"{node}: /dev/infiniband holds a device", node)
    message = f"{node}: /dev/infiniband holds no device"
    return Finding("rdma-device", "fail", message, node, f"on {node}: sudo modprobe ib_uverbs mlx5_ib", ("F51",))
