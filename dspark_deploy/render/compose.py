"""A rank's compose file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dspark_deploy.facts import labels
from dspark_deploy.family import Family
from dspark_deploy.plan.deployment import Deployment, Rank
from dspark_deploy.render.patches import FOLDER
from dspark_deploy.render.release import File
from dspark_deploy.render.template import fill

SCRIPTS = "/opt/dspark"  # where the container finds serve.sh and prepare.py
KEY = f"{SCRIPTS}/secrets.env"  # and the API key


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


def rank_mounts(family: Family) -> frozenset[str]:
    """Places in the container where one rank alone may have something mounted: a hub that lies elsewhere, the key."""
    return frozenset({f"{family.hf_home_in_container}/hub", KEY})


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
    return [Volume(str(rank.hf_home), cache), *hub, *scripts, *_secrets(deployment, rank), *_patches(deployment)]


def _secrets(deployment: Deployment, rank: Rank) -> list[Volume]:
    """The API key: a file beside the releases, on the node that serves the API."""
    if not deployment.keyed or rank.headless:
        return []
    return [Volume("../../secrets.env", KEY, read_only=True)]


def _patches(deployment: Deployment) -> Iterator[Volume]:
    """The user's own: what runs before vLLM, and files over files of the image."""
    if any(each.runs for each in deployment.patches):
        yield Volume(f"./{FOLDER}", f"{SCRIPTS}/{FOLDER}", read_only=True)
    for each in deployment.patches:
        for name, target in each.patch.files.items():
            yield Volume(f"./{FOLDER}/{each.name}/{name}", target, read_only=True)


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
