"""Read what both running ranks were started with and what their containers hold."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from dspark_deploy.facts.parity import HIDDEN_FLAG, HIDDEN_VARIABLE, RankSeen, parse_rank
from dspark_deploy.family import Family
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import together
from dspark_deploy.remote.program import text_of
from dspark_deploy.render.compose import rank_mounts

INSIDE = "inside"  # of remote/programs: what runs in the containers
INSIDE_S = 60  # some hundred MB are hashed, with the lowest priority
MARGIN_S = 60  # for the engine's answers


def read_ranks(
    hosts: Mapping[str, Host], pair: str, families: Iterable[Family], clock: Clock
) -> dict[str, RankSeen | None]:
    """By node; None where no rank runs. `families` tell where the images have what.

    Raises StepFailed or NodeUnreachable, naming the node.
    """
    request = {
        "pair": pair,
        "families": {family.name: _places(family) for family in families},
        "program": text_of(INSIDE),
        "limit_s": INSIDE_S,
        "salt": secrets.token_hex(16),
        "secret_variable": HIDDEN_VARIABLE,
        "secret_flag": HIDDEN_FLAG,
    }

    def read(host: Host) -> RankSeen | None:
        return parse_rank(host.name, host.call("parity", request, timeout_s=INSIDE_S + MARGIN_S))

    return together({node: partial(read, host) for node, host in hosts.items()}, clock)


def _places(family: Family) -> dict[str, Any]:
    """Where its images have what; `unread` are mounts that are each rank's own, a secret among them."""
    return {
        "python": family.python,
        "package": f"{family.packages}/vllm",
        "cache": family.hf_home_in_container,
        "unread": sorted(rank_mounts(family)),
    }
