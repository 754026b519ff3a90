"""The named scenarios of scenarios.yaml."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dspark_deploy.errors import ConfigError
from dspark_deploy.strict import Strict, Text, nearest, read_document, validate

HEALTHY = "healthy"


class NodeState(Strict):
    """What one node is when the rehearsal begins; the defaults are a healthy one."""

    sshd: bool = True  # something listens on its SSH port
    dockerd: bool = True
    images: Literal["own", "swapped", "none"] = "own"  # swapped: each tag names the other family's image
    hf_home: bool = True
    models: bool = True
    gpu: bool = True  # its engine can give one to a container
    rdma: bool = True
    listens: tuple[Literal["api", "rendezvous"], ...] = ()  # ports that something else has
    engine: dict[str, Any] = Field(default_factory=dict)  # switches of the stand-in engine on this node


class Scenario(Strict):
    """One thing that is broken."""

    about: Text
    up: int  # exit code of the first `dspark up`
    head: NodeState = NodeState()
    worker: NodeState = NodeState()


class _File(Strict):
    scenarios: dict[str, Scenario]


def scenarios() -> dict[str, Scenario]:
    """All of them, in the file's order."""
    with resources.as_file(resources.files("dspark_deploy.rehearsal") / "scenarios.yaml") as path:
        document = read_document(Path(path), absent="it belongs to the package: install it anew")
    return validate(_File, {"scenarios": document.data}, lambda key: document.where(key[1:])).scenarios


def scenario(name: str) -> Scenario:
    """One by name. Raises ConfigError with the nearest."""
    every = scenarios()
    if name not in every:
        guess = nearest(name, every)
        hint = f"did you mean `{guess}`? " if guess else ""
        raise ConfigError(
            f"no scenario is called `{name}`", remedy=f"{hint}`dspark rehearse --list` shows all {len(every)}"
        )
    return every[name]
