"""What a start changes about the API key that the nodes keep, and whether what runs was started with it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from dspark_deploy.facts.node import Container
from dspark_deploy.plan.launch import HEAD_FIRST, GiveKey, KeyStep, TakeKey


def key_steps(*, keyed: bool, same: bool, kept_at: Mapping[str, float | None]) -> tuple[KeyStep, ...]:
    """`keyed`: the release needs a key; `same`: the head keeps just that; `kept_at`: when each node's was written."""
    give = (GiveKey(),) if keyed and not same else ()
    needless = (node for node in HEAD_FIRST if kept_at.get(node) is not None and not (keyed and node == "head"))
    return (*give, *map(TakeKey, needless))


def is_stale(head: Container | None, kept_at: float | None) -> bool:
    """Whether the head's key was written after its rank was started, which then runs with another one.

    Both times are the node's own: no key, nor anything made from one, has to stand in a label for this.
    """
    if head is None or head.started_at is None or kept_at is None:
        return False
    return kept_at > datetime.fromisoformat(head.started_at).timestamp()
