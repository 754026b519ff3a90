"""An inventory file, read and held against what two nodes of one pair can be."""

from __future__ import annotations

from pathlib import Path

from dspark_deploy.inventory.model import Inventory, subnet_of
from dspark_deploy.patch import written_out
from dspark_deploy.strict import Document, Mistake, from_home, read_document, read_key, validate

_BOTH_ENDS = 2  # addresses of a /31, each a node's


def load_inventory(path: Path) -> Inventory:
    """The inventory in that file. `ssh_config`, `key_file` and the folders of patches are taken from its own folder.

    Raises ConfigError with file, line and key.
    """
    absent = f"`dspark init HEAD WORKER` writes one; or copy inventory.example.yaml to {path}, or name a file with -i"
    document = read_document(path, absent=absent)
    inventory = validate(Inventory, written_out(document.data, path.parent), document.where)
    _refuse_one_host(inventory, document)
    _refuse_no_hosts_address(inventory, document)
    _refuse_apart(inventory, document)
    if inventory.api.port == inventory.master_port:
        raise document.error(
            ("api", "port"),
            f"is {inventory.api.port}, which is master_port too: the head can't listen twice on one port",
            remedy="give one of them another port",
        )
    ssh_config, key_file = (_beside(path, each) for each in (inventory.ssh_config, inventory.api.key_file))
    if key_file is not None:
        _expect_key(key_file, document)
    api = inventory.api.model_copy(update={"key_file": key_file})
    return inventory.model_copy(update={"ssh_config": ssh_config, "api": api})


def _beside(path: Path, named: Path | None) -> Path | None:
    """A path that a file names: from the file's folder, and `~` is the user's home on this machine."""
    return None if named is None else path.parent / from_home(named)


def _refuse_one_host(inventory: Inventory, document: Document) -> None:
    if inventory.head.spec.identity == inventory.worker.spec.identity:
        both = "local" if inventory.worker.spec.local else f"the host that the head is too, {inventory.head.host}"
        raise document.error(
            ("worker", "host"), f"is {both}: a pair is two nodes", remedy="give the second node's host"
        )


def _refuse_no_hosts_address(inventory: Inventory, document: Document) -> None:
    """The first and the last address of a subnet are nobody's, unless it has but two (RFC 3021)."""
    for role, fabric in (("head", inventory.head.fabric), ("worker", inventory.worker.fabric)):
        subnet = subnet_of(fabric)
        if subnet is None or subnet.num_addresses == _BOTH_ENDS:
            continue
        names = {subnet.network_address: "is the name of", subnet.broadcast_address: "is the broadcast address of"}
        for address, what in names.items():
            if fabric.address == address:
                raise document.error(
                    (role, "fabric", "address"),
                    f"is {address}, which {what} {subnet}: no node can have it",
                    remedy="give this node's own address; `prefix` beside it makes the subnet wider",
                )


def _refuse_apart(inventory: Inventory, document: Document) -> None:
    """Fabric addresses that can't face each other."""
    head, worker = inventory.head.fabric, inventory.worker.fabric
    here, there = subnet_of(head), subnet_of(worker)
    if here is None or there is None:
        return
    key = ("worker", "fabric", "address")
    if head.address == worker.address:
        raise document.error(
            key, f"is {worker.address}, the head's address too", remedy="give each node its own fabric address"
        )
    if here != there:
        raise document.error(
            key,
            f"is in {there}, and the head's {head.address} is in {here}: they don't face each other",
            remedy="give two addresses of one subnet; `prefix` beside each says that it is wider than assumed",
        )


def _expect_key(path: Path, document: Document) -> None:
    """Raise ConfigError where the key file holds no key, or shows it to others. The key itself is not kept."""
    try:
        read_key(path)
    except Mistake as mistake:
        message = f"names {path}, which {mistake}"
        raise document.error(("api", "key_file"), message, remedy=mistake.remedy) from mistake
