"""Deployments for tests: the example inventory with the bundled data, or with changes to either."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.inventory import Inventory, load_inventory
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.resolve import resolve, resolve_workload
from dspark_deploy.strict import Given

BUNDLED = data_folder("profiles")
CATALOGUE = Catalogue(SearchPath((BUNDLED,)))
PROFILES = tuple(CATALOGUE.search.files("profile"))


def example_inventory() -> Inventory:
    """inventory.example.yaml, as it is shipped."""
    return load_inventory(BUNDLED.parent / "inventory.example.yaml")


def deploy(
    profile: str = "agent-1m",
    given: Mapping[str, str] = MappingProxyType({}),
    *,
    inventory: Inventory | None = None,
    facts: Mapping[str, NodeFacts] | None = None,
    catalogue: Catalogue = CATALOGUE,
    keyed: bool = False,
) -> Deployment:
    """One profile on the example pair. `given` are overrides, as --set has them."""
    overrides = [Given(key, text, "--set") for key, text in given.items()]
    workload = resolve_workload(catalogue, profile, overrides)
    return resolve(inventory or example_inventory(), catalogue, workload, facts, keyed=keyed)


def own_catalogue(folder: Path) -> Catalogue:
    """The bundled data with a folder of the test's own before it."""
    return Catalogue(SearchPath((folder, BUNDLED)))
