"""Start and stop one rank on its node. Both look first and confirm afterwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dspark_deploy.errors import LaunchFailed, StepFailed
from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.plan.situation import ALIVE
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host, Result
from dspark_deploy.remote.parallel import together

COMPOSE_UP_S = 120  # creates and starts one container from a local image: a slow disk at most


def start_rank(host: Host, pair: str, release: str, clock: Clock) -> Container:
    """Run the node's half of `release` and return its container. Raises LaunchFailed with the engine's own words.

    The engine's connection opens while compose works: it is needed right after, and takes as long as a start.
    """
    directory = f".local/share/dspark/{pair}/releases/{release}"
    command = ("docker", "compose", "-p", pair, "-f", "compose.yaml", "up", "-d", "--no-build")
    work: dict[str, Callable[[], Any]] = {
        "compose": partial(host.run, command, timeout_s=COMPOSE_UP_S, cwd=directory),
        "engine": lambda: host.engine().containers(pair),
    }
    result: Result = together(work, clock)["compose"]
    if result.returncode != 0:
        raise _compose_failed(host, result)
    for container in host.engine().containers(pair):
        if container.labels.get(labels.RELEASE) == release:
            return container
    raise LaunchFailed(
        f"{host.where}: compose reported success and no container of release {release} exists",
        remedy=f"run `docker ps -a --filter label={labels.PAIR}={pair}` on the node",
        node=host.name,
    )


def stop_rank(host: Host, container: Container) -> None:
    """End and remove `container`, and see that it is gone. Gone already is fine. Raises StepFailed."""
    engine = host.engine()
    engine.stop(container)
    left = engine.inspect(container.id)
    if left is not None:
        raise StepFailed(
            f"{host.where}: {container.name} is still there ({left.state}) after it was stopped",
            remedy=f"look at `docker inspect {container.id[:12]}` on the node, then run `dspark down` again",
            node=host.name,
        )


def stop_all(host: Host, pair: str) -> tuple[Container, ...]:
    """End everything on the node that carries the pair's label. Returns what it ended; raises StepFailed."""
    ended = host.engine().containers(pair)
    for container in ended:
        stop_rank(host, container)
    left = [container for container in host.engine().containers(pair) if container.state in ALIVE]
    if left:
        raise StepFailed(
            f"{host.where}: {left[0].name} runs again after everything was stopped",
            why="something else starts it: a restart policy, a supervisor or another run",
            remedy="end what restarts it, then run `dspark down` again",
            node=host.name,
        )
    return ended


# What the engine says when a start can't work -> what it means and what to do about it.
_CAUSES: tuple[tuple[str, str, str], ...] = (
    ("No such image", "the image is not on this node", "load or pull the image there; `up` never pulls"),
    (
        "could not select device driver",
        "the engine has no NVIDIA runtime",
        "install nvidia-container-toolkit there",
    ),
    (
        "Cannot connect to the Docker daemon",
        "the Docker daemon does not run",
        "start it: sudo systemctl start docker",
    ),
    (
        "bind source path does not exist",
        "a folder that the container mounts is missing",
        "create it on that node",
    ),
    ("no space left on device", "the node's disk is full", "free space on that node"),
)


def _compose_failed(host: Host, result: Result) -> LaunchFailed:
    said = "\n".join(line for line in (result.stderr or result.stdout).strip().splitlines() if line.strip())
    last = "\n".join(said.splitlines()[-6:])
    for text, meaning, remedy in _CAUSES:
        if text.lower() in said.lower():
            return LaunchFailed(f"{host.where}: {meaning}", why=last, remedy=remedy, node=host.name)
    return LaunchFailed(
        f"{host.where}: the container could not be started (docker compose: exit {result.returncode})",
        why=last,
        remedy="mend what the engine names, then run `dspark up` again",
        node=host.name,
    )
