"""What a pair is made of: decided where the user's data files are read, carried out in the background process.

Nothing here needs what reads those files: the background process would take twice as long to come up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

TIME_SCALE = 60.0  # the published boot takes 306 s: about 5 s here


@dataclass(frozen=True, slots=True)
class NodeState:
    """What one node is when the rehearsal begins; the defaults are a healthy one."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # for scenarios.py, which reads these

    sshd: bool = True  # something listens on its SSH port
    dockerd: bool = True
    images: Literal["own", "swapped", "none"] = "own"  # swapped: each tag names the other family's image
    hf_home: bool = True
    models: bool = True
    gpu: bool = True  # its engine can give one to a container
    rdma: bool = True
    listens: tuple[Literal["api", "rendezvous"], ...] = ()  # ports that something else has
    engine: dict[str, Any] = field(default_factory=dict)  # switches of the stand-in engine on this node


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """One image: the family it stands for, and where that family's images have what."""

    family: str
    tags: tuple[str, ...]
    digests: tuple[str, ...]  # name@sha256:…
    executable: str
    python: str
    packages: str
    baked_in: tuple[str, ...]  # environment names that the image sets


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One checkpoint: a hub id at a revision, or a folder below the Hugging Face home."""

    name: str
    revision: str | None  # None: a plain folder
    encoder: bool


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole pair. Both nodes have the same images and models."""

    scenario: str
    time_scale: float  # what takes a second on a real pair takes 1 / time_scale here
    head: NodeState
    worker: NodeState
    images: tuple[ImageSpec, ...]
    models: tuple[ModelSpec, ...]

    def write(self, path: Path) -> None:
        """Keep it as JSON."""
        path.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Spec:
        """What `write` kept."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            scenario=kept["scenario"],
            time_scale=kept["time_scale"],
            head=NodeState(**_with_tuples(kept["head"])),
            worker=NodeState(**_with_tuples(kept["worker"])),
            images=tuple(ImageSpec(**_with_tuples(each)) for each in kept["images"]),
            models=tuple(ModelSpec(**each) for each in kept["models"]),
        )


def _with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows lists alone."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
