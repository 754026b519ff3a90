"""Docker on a node: can the SSH user use it, and is its compose new enough."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dspark_deploy.checks.finding import Finding
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.plan.deployment import Deployment

OLDEST_COMPOSE = (2, 20)  # from here on create_host_path and the GPU reservation are honoured

_NO_ACCESS = {
    "permission": (
        "user {user} may not use Docker",
        "on {node}: sudo usermod -aG docker {user}, then end every SSH session of that user and try again",
    ),
    "down": ("the Docker daemon does not run", "on {node}: sudo systemctl start docker"),
    "absent": (
        "docker is not installed, or not on the PATH of a non-interactive shell",
        "install Docker on {node}",
    ),
    "unknown": ("Docker gives no usable answer", "on {node}: docker version"),
}


def check_docker(deployment: Deployment, facts: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Access first: without it nothing else about Docker is known."""
    del deployment
    for node, known in facts.items():
        docker = known.docker
        if docker.access != "ok":
            what, remedy = _NO_ACCESS[docker.access]
            said = f": {docker.detail}" if docker.detail else ""
            message = f"{node}: {what.format(user=known.user)}{said}"
            yield Finding("docker-access", "fail", message, node, remedy.format(user=known.user, node=node))
            continue
        yield Finding("docker-access", "ok", f"{node}: Docker {docker.version}", node)
        yield _compose(node, docker.compose)


def _compose(node: str, version: str | None) -> Finding:
    oldest = ".".join(map(str, OLDEST_COMPOSE))
    if version is None:
        message = f"{node}: the docker compose plugin is missing (docker-compose 1.x is not usable)"
        return Finding("compose-version", "fail", message, node, f"install docker-compose-plugin {oldest} or newer")
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_COMPOSE:
        message = f"{node}: docker compose {version} is older than {oldest}"
        return Finding("compose-version", "fail", message, node, f"install docker-compose-plugin {oldest} or newer")
    return Finding("compose-version", "ok", f"{node}: docker compose {version}", node)
