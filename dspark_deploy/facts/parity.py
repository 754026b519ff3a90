"""What a running rank was started with and what its container holds, as its node tells it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Image
from dspark_deploy.facts.parse import parse_image
from dspark_deploy.facts.redact import HIDDEN, SECRET_NAME, SECRETS

HIDDEN_VARIABLE = SECRET_NAME.pattern  # names of the environment whose values don't leave the node
HIDDEN_FLAG = r"^--(api-key|hf-token)$|secret|password|credential"  # and of the command line


@dataclass(frozen=True, slots=True)
class Value:
    """A word or a variable's value. Of a secret only a mark is known, which is equal where two secrets are."""

    text: str
    mark: str = ""

    def __str__(self) -> str:
        return HIDDEN if self.mark else SECRETS.sub(HIDDEN, self.text)


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file of the release that the rank was started from, on its node."""

    name: str
    sha256: str  # as its manifest has it
    state: str  # whole, changed or missing, in the release's folder
    mounted_at: str | None = None  # its place in the container


@dataclass(frozen=True, slots=True)
class RankSeen:
    """One rank that runs. What its node could not tell is empty here and stands in `untold`, with the reason."""

    node: str
    container: str  # its id
    started_at: str
    release: str | None
    family: str | None
    image: Image | None
    argv: tuple[Value, ...]  # entrypoint included
    environment: Mapping[str, Value]
    mounts: Mapping[str, str]  # place in the container -> read-only or read-write
    mounted: Mapping[str, str | None]  # file in the container -> SHA-256; None: it can't be read there
    package: Mapping[str, str | None] | None  # file of the vllm package -> SHA-256
    printed: tuple[str, ...]  # what the container's own preparation said
    release_files: tuple[ReleaseFile, ...]  # none where the node keeps no readable manifest
    untold: Mapping[str, str] = field(default_factory=dict)  # image, package, mounted or printed -> why


def parse_rank(node: str, document: Mapping[str, Any]) -> RankSeen | None:
    """Read what remote/programs/parity.py answers; None where no rank runs there."""
    rank = document["rank"]
    if rank is None:
        return None
    return RankSeen(
        node=node,
        container=rank["container"],
        started_at=rank["started_at"],
        release=rank["labels"].get(labels.RELEASE),
        family=rank["labels"].get(labels.FAMILY),
        image=None if rank["image"] is None else parse_image(rank["image"]),
        argv=tuple(map(_value, rank["argv"])),
        environment={name: _value(value) for name, value in rank["environment"].items()},
        mounts=rank["mounts"],
        mounted=rank["mounted"],
        package=rank["package"],
        printed=tuple(rank["printed"]),
        release_files=tuple(ReleaseFile(**each) for each in rank["release_files"]),
        untold=rank["untold"],
    )


def _value(told: Any) -> Value:
    return Value("", told["secret"]) if isinstance(told, Mapping) else Value(told)
