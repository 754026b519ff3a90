"""A rank's compose file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dspark_deploy.facts import labels
from dspark_deploy.plan.deployment import Deployment, Rank
from dspark_deploy.render.release import File
from dspark_deploy.render.template import fill

SCRIPTS = "/opt/dspark"  # where the container finds serve.sh and prepare.py


@dataclass(frozen=True, slots=True)
class Volume:
    """One bind mount. A relative source lies beside the compose file."""

    source: str
    target: str
    read_only: bool = False


def compose_file(deployment: Deployment, rank: Rank, argv: Sequence[str], *, release: str, tool: str) -> File:
    """What compose starts on the rank's node. `argv` is vllm's, from `serve` on.

    `release` and `tool` (the version of dspark) stand in labels and in the header only.
    """
    text = fill(
        "compose.yaml",
        pair=deployment.pair,
        profile=deployment.profile.name,
        family=deployment.family,
        rank=rank,
        image=deployment.image,
        command=_one_flag_a_line(argv),
        restart=deployment.restart,
        volumes=_volumes(deployment, rank),
        labels=_labels(deployment, rank, release=release, tool=tool),
        release=release,
        tool=tool,
    )
    return File(text, mode=0o644)


def _one_flag_a_line(argv: Iterable[str]) -> list[list[str]]:
    lines: list[list[str]] = []
    for word in argv:
        if not lines or word.startswith("--"):
            lines.append([])
        lines[-1].append(word)
    return lines


def _volumes(deployment: Deployment, rank: Rank) -> list[Volume]:
    """The scripts come from the release's own folder, so that its id does not depend on where that lies."""
    cache = deployment.family.hf_home_in_container
    hub = [Volume(str(rank.hub_cache), f"{cache}/hub")] if rank.hub_cache else []
    scripts = [Volume(f"./{name}", f"{SCRIPTS}/{name}", read_only=True) for name in ("serve.sh", "prepare.py")]
    return [Volume(str(rank.hf_home), cache), *hub, *scripts]


def _labels(deployment: Deployment, rank: Rank, *, release: str, tool: str) -> Mapping[str, str]:
    return {
        labels.PAIR: deployment.pair,
        labels.RANK: str(rank.number),
        labels.NODE: rank.node,
        labels.RELEASE: release,
        labels.PROFILE: deployment.profile.name,
        labels.FAMILY: deployment.family.name,
        labels.TOOL: tool,
    }
