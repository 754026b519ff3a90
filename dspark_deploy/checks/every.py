"""All checks of a start, in the order in which their findings are shown. A new check is one entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dspark_deploy.checks.docker import check_docker
from dspark_deploy.checks.finding import Finding
from dspark_deploy.checks.image import check_image
from dspark_deploy.checks.mounts import check_mounts
from dspark_deploy.checks.nodes import check_foreign_containers, check_two_machines
from dspark_deploy.checks.ports import check_ports
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.plan.deployment import Deployment

Check = Callable[[Deployment, Mapping[str, NodeFacts]], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    check_two_machines,
    check_docker,
    check_image,
    check_mounts,
    check_ports,
    check_foreign_containers,
)


def check_start(deployment: Deployment, facts: Mapping[str, NodeFacts]) -> tuple[Finding, ...]:
    """What every check says of starting `deployment` on nodes with `facts`."""
    return tuple(finding for check in CHECKS for finding in check(deployment, facts))
