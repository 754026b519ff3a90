"""A rank's env file: the container's environment, as compose reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dspark_deploy.errors import ConfigError
from dspark_deploy.plan.deployment import Deployment, Rank
from dspark_deploy.render.quoting import refuse_uncarriable
from dspark_deploy.render.release import File
from dspark_deploy.render.template import fill

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_STEERS_COMPOSE = ("COMPOSE_", "DOCKER_")  # compose reads a file of this name for itself too


def env_file(
    deployment: Deployment, rank: Rank, environment: Mapping[str, str], peer: Mapping[str, str], *, tool: str
) -> File:
    """The environment of one rank, what differs from its peer's first. Readable by its owner alone.

    Raises ConfigError, naming the variable, for one that can't be carried or is empty.
    """
    for name, value in environment.items():
        _refuse(name, value, node=rank.node)
    ordered = sorted(environment.items())
    text = fill(
        "env",
        pair=deployment.pair,
        profile=deployment.profile.name,
        family=deployment.family.name,
        rank=rank,
        own={name: value for name, value in ordered if peer.get(name) != value},
        shared={name: value for name, value in ordered if peer.get(name) == value},
        tool=tool,
    )
    return File(text, mode=0o600)


def _refuse(name: str, value: str, *, node: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"environment variable {name!r}: not a name that a process can have",
            remedy="use letters, digits and _ only",
            node=node,
        )
    if name.startswith(_STEERS_COMPOSE):
        raise ConfigError(
            f"environment variable {name}: would steer docker compose, not the container",
            remedy="leave it out of the profile's environment",
            node=node,
        )
    if not value:
        raise ConfigError(
            f"environment variable {name}: is empty",
            why="some readers take a variable that is set and empty for a value of its own",
            remedy="leave it out, or give it a value",
            node=node,
        )
    refuse_uncarriable(value, what=f"environment variable {name}")
