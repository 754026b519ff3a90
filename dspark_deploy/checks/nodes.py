"""The two nodes as a pair: two machines, and nothing foreign under the pair's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dspark_deploy.checks.finding import Finding
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.situation import read_situation


def check_two_machines(deployment: Deployment, facts: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Two names of one machine would put both ranks on one GPU."""
    del deployment
    head, worker = facts["head"], facts["worker"]
    if head.boot_id is None or worker.boot_id is None:
        missing = head if head.boot_id is None else worker
        yield Finding("two-machines", "skip", f"{missing.node}: {missing.missing.get('boot_id', 'no boot id')}")
    elif head.boot_id == worker.boot_id and head.hostname == worker.hostname:
        message = f"head and worker are one machine ({head.hostname})"
        yield Finding("two-machines", "fail", message, None, "give the worker's own host in the inventory", ("F41",))
    else:
        yield Finding("two-machines", "ok", f"two machines: {head.hostname} and {worker.hostname}")


def check_foreign_containers(deployment: Deployment, facts: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """A compose project of the pair's name that is not the pair's: compose would replace its containers."""
    for node, containers in read_situation(deployment.pair, facts).foreign.items():
        if containers:
            message = (
                f"{node}: compose project {deployment.pair!r} holds {containers[0].name}, which is not of this pair"
            )
            remedy = "give this pair another `name` in the inventory, or remove that container"
            yield Finding("foreign-containers", "fail", message, node, remedy)
        else:
            yield Finding("foreign-containers", "ok", f"{node}: the name {deployment.pair!r} is free", node)
