"""An env file of upstream's as values of a new inventory and of a profile of its own."""

from __future__ import annotations

from collections.abc import Mapping

from dspark_deploy.plan.draft import Draft, Said
from dspark_deploy.plan.upstream_env import TakenOver


def inventory_values(taken: TakenOver, found: Draft, *, hosts_given: bool) -> dict[str, Said]:
    """What the file says of the pair. `found` is what the nodes say: where both agree, both are named."""
    values: dict[str, Said] = {}
    for key, value in taken.inventory.items():
        if key == "worker.host" and hosts_given:
            continue
        told = taken.reasons[key]
        agreed = found[key].why if key in found and found[key].value == value else ""
        values[key] = Said(value, f"{told}; {agreed}" if agreed else told)
    return values


def profile_values(taken: TakenOver, model_name: str) -> dict[str, Said]:
    """What the file serves otherwise than the nearest profile; empty where nothing differs.

    `model_name` is what a model is called that is written for the file.
    """
    workload = taken.workload
    lines = {fate.name: fate.line for fate in taken.keys}
    given: Mapping[str, object] = (
        workload.values if workload.model is None else {"model": model_name, **workload.values}
    )
    return {
        key: Said(_plain(value), f"{name}, line {lines[name]}")
        for key, value in given.items()
        for name in [workload.origins[key]]
    }


def _plain(value: object) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
