"""Cases for the checks: a healthy pair, or one with changes to either node or to what is meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.checks.case import Case
from dspark_deploy.checks.layout import layout_of, variables_file
from dspark_deploy.checks.link import NODES, used_rails
from dspark_deploy.facts.link import Heard
from dspark_deploy.facts.node import Granted, Image, Look
from dspark_deploy.inventory import Inventory
from dspark_deploy.plan.resolve import resolve_workload
from dspark_deploy.strict import Given
from tests.plan.deployments import CATALOGUE, example_inventory
from tests.samples import image, pair_facts

NOTHING: Mapping[str, Any] = MappingProxyType({})
MEASURED = load_measurements()


def inventory(**changes: Mapping[str, Any]) -> Inventory:
    """The example, each node's cache in its own home; `head={"fabric": ...}` and the like change it."""
    example = example_inventory()
    homes = {node: {"hf_home": "~/.cache/huggingface"} for node in NODES}
    data = example.model_dump()
    for section, values in changes.items():
        data[section] = {**data[section], **values}
    for node, values in homes.items():
        data[node] = {**data[node], **values}
    return Inventory.model_validate(data)


def look(family: str = "anemll", *, of: Image | None = None, without: tuple[str, ...] = ()) -> Look:
    """What is in an image of a family. `without` are variables that it does not read."""
    known = CATALOGUE.family(family)
    every = [path for each in CATALOGUE.families() for path in layout_of(each)]
    present = layout_of(known)
    names = tuple(name for name in (*known.registered, *known.baked_in) if name not in without)
    absent = tuple(path for path in every if path not in present)
    return Look((of or image()).id, present, absent, {variables_file(known): names})


def granted(**changes: Any) -> Granted:
    """What a rank of the Anemll family is given."""
    known: dict[str, Any] = {
        "mounts": ("/cache/huggingface", "/opt/dspark/prepare.py", "/opt/dspark/serve.sh"),
        "devices": ("/dev/infiniband/uverbs0",),
        "memlock_bytes": -1,
        "gpu": True,
    }
    return Granted(**{**known, **changes})


def case(
    head: Mapping[str, Any] = NOTHING,
    worker: Mapping[str, Any] = NOTHING,
    *,
    pair: Inventory | None = None,
    profile: str | None = "agent-1m",
    given: Mapping[str, str] = NOTHING,
    heard: Mapping[str, Mapping[str, Any]] = NOTHING,
) -> Case:
    """A healthy pair with changes to its nodes' facts, to what is served, and to what is heard on the first rail."""
    known = {"looks": (look(),)}
    overrides = [Given(key, text, "--set") for key, text in given.items()]
    plain = Case(
        pair or inventory(),
        pair_facts({**known, **head}, {**known, **worker}),
        CATALOGUE,
        None if profile is None else resolve_workload(CATALOGUE, profile, overrides),
    )
    told = {node: tuple(_heard(plain, side, heard.get(node, NOTHING))) for side, node in enumerate(NODES)}
    return replace(plain, heard=told, measured=MEASURED)


def _heard(known: Case, side: int, changes: Mapping[str, Any]) -> list[Heard]:
    fine: dict[str, Any] = {"small": True, "full": True}
    return [
        Heard(
            rail.interfaces[side],
            rail.addresses[side],
            rail.addresses[1 - side],
            rail.size,
            **{**fine, **({} if number else changes)},
        )
        for number, rail in enumerate(used_rails(known))
    ]
