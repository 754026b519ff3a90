"""An inventory file, read and held against what two nodes of one pair can be."""

from __future__ import annotations

import stat
from pathlib import Path

from dspark_deploy.inventory.model import Inventory, subnet_of
from dspark_deploy.strict import Document, read_document, read_text, validate


def load_inventory(path: Path) -> Inventory:
    """The inventory in that file. `ssh_config` and `key_file` are taken from the file's own folder.

    Raises ConfigError with file, line and key.
    """
    absent = f"`dspark init HEAD WORKER` writes one; or copy inventory.example.yaml to {path}, or name a file with -i"
    document = read_document(path, absent=absent)
    inventory = validate(Inventory, document.data, document.where)
    _refuse_one_host(inventory, document)
    _refuse_apart(inventory, document)
    if inventory.api.port == inventory.master_port:
        raise document.error(
            ("api", "port"),
            f"is {inventory.api.port}, which is master_port too: the head can't listen twice on one port",
            remedy="give one of them another port",
        )
    if inventory.api.key_file is not None:
        _refuse_key_file(_beside(path, inventory.api.key_file), document)
    if inventory.ssh_config is None:
        return inventory
    return inventory.model_copy(update={"ssh_config": _beside(path, inventory.ssh_config)})


def _beside(path: Path, named: Path) -> Path:
    """A path that a file names: from the file's folder, and `~` is the user's home on this machine."""
    return path.parent / named.expanduser()


def _refuse_one_host(inventory: Inventory, document: Document) -> None:
    if inventory.head.spec.identity == inventory.worker.spec.identity:
        both = "local" if inventory.worker.spec.local else f"the host that the head is too, {inventory.head.host}"
        raise document.error(
            ("worker", "host"), f"is {both}: a pair is two nodes", remedy="give the second node's host"
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


def _refuse_key_file(path: Path, document: Document) -> None:
    """What is wrong with the key file, and that none is taken yet."""
    key = ("api", "key_file")
    if not path.is_file():
        raise document.error(
            key, f"names {path}, and there is no such file", remedy="write one key into it, or say null"
        )
    lines = read_text(path, absent="it was there a moment ago").splitlines()
    if not any(line.strip() for line in lines):
        raise document.error(key, f"names {path}, which is empty", remedy="write one key on one line")
    if len(lines) > 1:
        raise document.error(key, f"names {path}, which holds {len(lines)} lines", remedy="write one key on one line")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise document.error(key, f"names {path}, which others can read", remedy=f"chmod 600 {path}")
    raise document.error(
        key,
        f"names {path}: API keys are not supported yet",
        why="a key would have to travel in a release file or an argument, where others can read it",
        remedy="set key_file: null, and bind the API where only its clients reach it",
    )
