"""The key that the served API asks its clients for: as this machine has it, and as the head keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from dspark_deploy.errors import ConfigError
from dspark_deploy.execute.key import look_at_key
from dspark_deploy.facts.node import Container
from dspark_deploy.inventory import Inventory
from dspark_deploy.plan.keys import is_stale, key_steps
from dspark_deploy.plan.launch import KeyStep
from dspark_deploy.remote.host import Host
from dspark_deploy.settings import API_KEY, Settings
from dspark_deploy.strict import Mistake, read_key


@dataclass(frozen=True, slots=True)
class KeyChange:
    """What a start has to do about the API key."""

    steps: tuple[KeyStep, ...]
    stale: bool  # the head that runs was started with another key, or with none that is known


def key_change(
    hosts: Mapping[str, Host],
    pair: str,
    *,
    keyed: bool,
    head: Container | None,
    kept_at: Mapping[str, float | None] | None = None,
) -> KeyChange:
    """For a release that needs a key, or none. `head` is the rank that runs, `kept_at` when each node's key was
    written, as far as that was asked. Changes nothing; raises StepFailed or NodeUnreachable.
    """
    if not keyed:
        return KeyChange(key_steps(keyed=False, same=True, kept_at=kept_at or {}), stale=False)
    kept = look_at_key(hosts["head"], pair, hosts["head"].api_key)
    steps = key_steps(keyed=True, same=kept.same, kept_at=kept_at or {})
    return KeyChange(steps, stale=head is not None and (not kept.same or is_stale(head, kept.at)))


def key_of(inventory: Inventory, settings: Settings) -> SecretStr | None:
    """DSPARK_API_KEY's, or the one in the inventory's key file; None where neither is there.

    Raises ConfigError where both are and differ: which one a pair is locked with is nothing to guess.
    """
    given, path = settings.api_key, inventory.api.key_file
    if path is None:
        return given
    try:
        written = read_key(path)
    except Mistake as mistake:
        raise ConfigError(f"api.key_file: {path} {mistake}", remedy=mistake.remedy) from mistake
    if given is not None and given != written:
        raise ConfigError(
            f"{API_KEY} holds another key than {path}, which the inventory names as api.key_file",
            remedy=f"unset {API_KEY}, or take key_file out of the inventory",
        )
    return written
