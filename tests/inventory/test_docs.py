"""docs/inventory.md names every key that an inventory has, and every key of upstream's that goes somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.inventory import Api, Fabric, Inventory, Node
from dspark_deploy.plan.upstream_keys import IN_INVENTORY, IN_PROFILE, MODEL_KEYS

TEXT = (Path(__file__).parents[2] / "docs" / "inventory.md").read_text(encoding="utf-8")
KEYS = [
    *(field for field in Inventory.model_fields if field not in {"head", "worker", "api"}),
    *(f"….{field}" for field in Node.model_fields if field not in {"host", "fabric"}),
    *(f"….fabric.{field}" for field in Fabric.model_fields),
    *(f"api.{field}" for field in Api.model_fields),
]


@pytest.mark.parametrize("key", ["head.host", "worker.host", *KEYS])
def test_every_key_has_its_row(key: str) -> None:
    rows = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `")]
    assert any(f"`{key}`" in row for row in rows)


@pytest.mark.parametrize("name", [*IN_INVENTORY, *IN_PROFILE, *MODEL_KEYS])
def test_every_key_of_upstreams_that_goes_somewhere_is_named(name: str) -> None:
    assert f"`{name}`" in TEXT
