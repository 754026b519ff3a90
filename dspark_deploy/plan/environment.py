"""The environment of one rank's container: the family's switches, the profile's, and what only this rank has."""

from __future__ import annotations

from dspark_deploy.family import Family
from dspark_deploy.plan.deployment import Deployment, Rank
from dspark_deploy.plan.patches import plugin_environment

# Would have the container look elsewhere than in the cache that is mounted and verified.
OTHER_CACHES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE")
# The hub client's own limits of 10 s end the transfer of a shard on a slow link (F26). Upstream's values, CHANGELOG.md
# of 2026-08-20.
DOWNLOAD = {"HF_HUB_DOWNLOAD_TIMEOUT": "120", "HF_HUB_ETAG_TIMEOUT": "30"}


def environment(deployment: Deployment, rank: Rank) -> dict[str, str]:
    """Name -> value, never an empty one: some readers take defined-empty for set.

    The pins come last, so that nothing a family or profile says can move a rank off its own node.
    """
    family = deployment.family
    download = {} if deployment.offline else DOWNLOAD
    given = {**family.environment, **download, **deployment.profile.environment}
    return {**given, **plugin_environment(deployment.patches, given), **_pins(deployment, rank)}


def pinned_names(family: Family) -> frozenset[str]:
    """Variables that are derived per rank or deployment: no profile sets them."""
    names = {"HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}
    return frozenset({*names, *OTHER_CACHES, *rank_names(family)})


def rank_names(family: Family) -> frozenset[str]:
    """Variables whose value is each rank's own; every other one is the same on both."""
    return frozenset({"VLLM_HOST_IP", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", *family.interface_variables})


def _pins(deployment: Deployment, rank: Rank) -> dict[str, str]:
    family = deployment.family
    pins = {
        "HF_HOME": family.hf_home_in_container,
        "VLLM_HOST_IP": str(rank.address),  # the head's on the worker would be an address that it can't bind (F47)
        **dict.fromkeys(family.interface_variables, rank.interface),
    }
    pins |= dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"), "1" if deployment.offline else "0")
    if rank.hca is not None:
        pins["NCCL_IB_HCA"] = rank.hca
    if rank.gid_index is not None:
        pins["NCCL_IB_GID_INDEX"] = str(rank.gid_index)
    return pins
