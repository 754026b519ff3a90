"""The environment of one rank's container: the family's switches, the profile's, and what only this rank has."""

from __future__ import annotations

from dspark_deploy.family import Family
from dspark_deploy.plan.deployment import Deployment, Rank


def environment(deployment: Deployment, rank: Rank) -> dict[str, str]:
    """Name -> value, never an empty one: some readers take defined-empty for set.

    The pins come last, so that nothing a family or profile says can move a rank off its own node.
    """
    family = deployment.family
    return {**family.environment, **deployment.profile.environment, **_pins(deployment, rank)}


def pinned_names(family: Family) -> frozenset[str]:
    """Variables that are derived per rank or deployment: no profile sets them."""
    names = {"VLLM_HOST_IP", "HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX"}
    return frozenset({*names, *family.interface_variables})


def _pins(deployment: Deployment, rank: Rank) -> dict[str, str]:
    family = deployment.family
    pins = {
        "HF_HOME": family.hf_home_in_container,
        "VLLM_HOST_IP": str(rank.address),  # the head's on the worker would be an address that it can't bind (F47)
        **dict.fromkeys(family.interface_variables, rank.interface),
    }
    if deployment.offline:
        pins |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    if rank.hca is not None:
        pins["NCCL_IB_HCA"] = rank.hca
    if rank.gid_index is not None:
        pins["NCCL_IB_GID_INDEX"] = str(rank.gid_index)
    return pins
