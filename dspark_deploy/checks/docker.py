"""Docker on a node: can the SSH user use it, is its compose new enough, is it an engine that can do the work."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, doubtful, fine
from dspark_deploy.facts.node import NodeFacts

OLDEST_COMPOSE = (2, 20)  # from here on create_host_path and the GPU reservation are honoured
LEAST_MEMLOCK = 2**36  # bytes, 64 GiB: RDMA pins what it registers

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
_PENDING = (
    "user {user} is in group docker, but this login is not",
    "end every SSH session of {user} on {node}, shared connections included, or restart it; then try again",
)


def _access(case: Case) -> Iterator[Verdict]:
    """First: without it nothing else about Docker is known."""
    for node, known in case.facts.items():
        docker = known.docker
        if docker.access == "ok":
            yield fine(f"{node}: Docker {docker.version}", node)
            continue
        pending = docker.access == "permission" and docker.group_pending
        what, remedy = _PENDING if pending else _NO_ACCESS[docker.access]
        said = f": {docker.detail}" if docker.detail else ""
        message = f"{node}: {what.format(user=known.user)}{said}"
        yield bad(message, remedy.format(user=known.user, node=node), node)


def _compose(case: Case) -> Iterator[Verdict]:
    oldest = ".".join(map(str, OLDEST_COMPOSE))
    for node, known in case.usable():
        version = known.docker.compose
        remedy = f"install docker-compose-plugin {oldest} or newer on {node}"
        if version is None:
            said = known.missing.get("compose")
            why = f": {said}" if said else ""
            yield bad(
                f"{node}: the docker compose plugin is missing (docker-compose 1.x is not usable){why}", remedy, node
            )
        elif tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < OLDEST_COMPOSE:
            yield bad(f"{node}: docker compose {version} is older than {oldest}", remedy, node)
        else:
            yield fine(f"{node}: docker compose {version}", node)


def _context(case: Case) -> Iterator[Verdict]:
    for node, known in case.usable():
        context = known.docker.context
        if context != "default":
            remedy = f"on {node}: docker context use default, unless that engine is meant"
            yield bad(f"{node}: docker commands go to context {context!r}, not to the system's engine", remedy, node)


def _snap(case: Case) -> Iterator[Verdict]:
    for node, known in case.usable():
        if known.docker.snap:
            message = (
                f"{node}: Docker is a snap ({known.docker.root}): it finds no NVIDIA runtime, and mounts look empty"
            )
            remedy = f"on {node}: sudo snap remove docker, then install Docker Engine from its own packages"
            yield bad(message, remedy, node)


def _rootless(case: Case) -> Iterator[Verdict]:
    for node, known in case.usable():
        if known.docker.rootless:
            yield _of_rootless(node, known)


def _of_rootless(node: str, known: NodeFacts) -> Verdict:
    limit = known.system.memlock_bytes
    if not known.system.linger:
        message = f"{node}: Docker is rootless, and containers would stop when the last session of {known.user} ends"
        return bad(message, f"on {node}: sudo loginctl enable-linger {known.user}", node, covers=())
    if limit is not None and limit < LEAST_MEMLOCK:
        message = f"{node}: Docker is rootless, and {known.user} may lock only {limit} bytes of memory: RDMA needs more"
        remedy = f"on {node}: give {known.user} an unlimited memlock in /etc/security/limits.conf, then log in anew"
        return bad(message, remedy, node)
    said = f"{node}: Docker is rootless, where nothing here is proven"
    return doubtful(said, f"use the system's engine on {node}", node, covers=())


def _gpu(case: Case) -> Iterator[Verdict]:
    """Whether the engine can hand the GPU on."""
    for node, known in case.usable():
        if known.docker.gpu is False and _needs_gpu(case):
            remedy = f"on {node}: install nvidia-container-toolkit, sudo nvidia-ctk runtime configure --runtime=docker"
            yield bad(f"{node}: Docker has no NVIDIA runtime, so that no container gets the GPU", remedy, node)
        elif known.docker.gpu:
            yield fine(f"{node}: Docker can give a container the GPU", node)


def _needs_gpu(case: Case) -> bool:
    return case.workload is None or case.workload.family.gpu


CHECKS = (
    Check("docker-access", "docker", "fail", (), _access),
    Check("compose-version", "docker", "fail", (), _compose),
    Check("docker-context", "docker", "warn", (), _context),
    Check("docker-snap", "docker", "fail", (), _snap),
    Check("docker-rootless", "docker", "fail", ("F50",), _rootless),
    Check("nvidia-runtime", "docker", "fail", ("F124",), _gpu),
)
