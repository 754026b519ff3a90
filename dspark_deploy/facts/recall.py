"""What a node remembers of the pair, and whether its rank can use the GPU: nothing is looked at again. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dspark_deploy.facts.node import Noted


@dataclass(frozen=True, slots=True)
class HashedOnce:
    """When every file of a snapshot was last hashed on that node, and how it ended: complete, corrupt or partial."""

    at: str  # RFC 3339, the node's clock
    folder: str
    verdict: str


@dataclass(frozen=True, slots=True)
class GpuInside:
    """Whether a rank's container can use the GPU. None: it can't be told, and `detail` says why."""

    usable: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """One node's memory."""

    noted: Noted | None  # None: the pair never came up well there
    hashed: tuple[HashedOnce, ...]
    gpu: GpuInside | None  # None: no rank runs there

    def hashed_of(self, model: str) -> HashedOnce | None:
        """The last one of `model`, a hub id or a directory as the container sees it; None where it never was."""
        name = f"models--{model.replace('/', '--')}" if model.count("/") == 1 else model.rstrip("/").rpartition("/")[2]
        of_it = (each for each in self.hashed if name in each.folder.split("/"))
        return max(of_it, key=lambda each: each.at, default=None)


def parse_recalled(document: Mapping[str, Any]) -> Recalled:
    """Read what remote/programs/recall.py answers."""
    noted, gpu = document["noted"], document["gpu"]
    return Recalled(
        noted=None if noted is None else Noted(noted["at"], dict(noted["values"])),
        hashed=tuple(HashedOnce(**each) for each in document["hashed"]),
        gpu=None if gpu is None else GpuInside(**gpu),
    )
