"""`unlock`: end whoever holds the pair's lock, and say who it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.pair import reach_pair
from dspark_deploy.flow.wish import Wish
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import together

UNLOCK_S = 15


@dataclass(frozen=True, slots=True)
class UnlockReport:
    """By node: who held the lock and was ended, or None where it was free."""

    pair: str
    ended: Mapping[str, Mapping[str, Any] | None]
    unreachable: Mapping[str, str]


def unlock_pair(wish: Wish, clock: Clock) -> UnlockReport:
    """The run that loses it stops where it is and undoes nothing. Raises NodeUnreachable where neither answers."""
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        if not reached.hosts:
            raise next(iter(reached.unreachable.values()))
        work = {node: partial(_unlock, host, inventory.name) for node, host in reached.hosts.items()}
        ended = together(work, clock)
    return UnlockReport(inventory.name, ended, {node: error.message for node, error in reached.unreachable.items()})


def _unlock(host: Host, pair: str) -> Mapping[str, Any] | None:
    answer = host.call("unlock", {"pair": pair}, timeout_s=UNLOCK_S)
    owner: Mapping[str, Any] | None = answer["owner"]
    return owner
