"""Where a node's user keeps Hugging Face caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dspark_deploy.model import Model


@dataclass(frozen=True, slots=True)
class CachePlace:
    """One Hugging Face home and its hub cache. Paths are absolute."""

    setting: str  # what says so: `HF_HOME`, `HF_HOME in ~/.bashrc`, `the usual place`
    hf_home: str
    hub: str  # mostly hf_home/hub
    there: bool  # hf_home is a folder
    writable: bool  # where it is not there: whether it can be made
    free_bytes: int | None
    models: tuple[str, ...]  # hub ids of what has a snapshot, whole or not
    directories: tuple[str, ...]  # of the plain folders that were asked for

    def holds(self, model: Model) -> bool:
        """Whether something of it is there. Whether all of it is, is another question."""
        return model.id in self.models or model.directory in self.directories

    @property
    def hub_elsewhere(self) -> bool:
        """Whether the hub cache does not lie in its usual place below hf_home."""
        return self.hub != f"{self.hf_home}/hub"


def parse_places(document: Mapping[str, Any]) -> tuple[CachePlace, ...]:
    """Read what remote/programs/places.py answers, in the order in which the library would look."""
    return tuple(
        CachePlace(**{**found, "models": tuple(found["models"]), "directories": tuple(found["directories"])})
        for found in document["places"]
    )
