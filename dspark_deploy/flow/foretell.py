"""What `up` would say of an inventory that was just written, as far as it is known by now."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.every import judge
from dspark_deploy.checks.finding import Finding
from dspark_deploy.errors import DsparkError
from dspark_deploy.flow.intention import Intention, load_meant
from dspark_deploy.flow.meet import Met
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Fabric, Inventory, Node


def foretell(wish: Wish, path: Path, met: Met | None) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """What the checks find amiss, and why a start would be refused before them. Without `met` no node is judged.

    Raises ConfigError where what was written can't be read again.
    """
    inventory, intention = load_meant(replace(wish, inventory=path, profile=None, ssh_config=None))
    if intention is None:
        return (), ()
    refused = _refusal(intention, met)
    if met is None:
        return (), refused
    case = Case(inventory, met.facts, intention.catalogue, intention.workload, heard=met.heard)
    return tuple(each for each in judge(case) if each.status in {"warn", "fail"}), refused


def _refusal(intention: Intention, met: Met | None) -> tuple[str, ...]:
    try:
        if met is None:
            replace(intention, inventory=_as_if_told(intention.inventory)).resolve(None)
        else:
            intention.resolve(met.facts)
    except DsparkError as error:
        return (f"`dspark up` will refuse this: {error.message}; {error.remedy}",)
    return ()


def _as_if_told(inventory: Inventory) -> Inventory:
    """The same with made-up wiring, so that everything else can be judged without the nodes."""

    def told(node: Node, number: int) -> Node:
        fabric = Fabric(interface="fabric", address=IPv4Address(f"192.0.2.{number}"), hca="=hca")
        return node.model_copy(update={"fabric": fabric, "hf_home": "/hf", "hub_cache": None})

    return inventory.model_copy(update={"head": told(inventory.head, 1), "worker": told(inventory.worker, 2)})
