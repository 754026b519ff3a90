"""The named scenarios of scenarios.yaml."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from dspark_deploy.errors import ConfigError
from dspark_deploy.rehearsal.spec import NodeState
from dspark_deploy.strict import Strict, Text, nearest, read_document, validate

HEALTHY = "healthy"


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
