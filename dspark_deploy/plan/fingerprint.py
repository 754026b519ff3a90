"""What a node is, in a few words each: kept when the pair comes up well, to say later what has changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from dspark_deploy.facts.node import Image, NodeFacts
from dspark_deploy.plan.fabric import Wire
from dspark_deploy.plan.gid import common_index, selected_ports, usable_indexes

MOVES = frozenset({"boot", "GID index"})  # a restart changes them, and nothing rests on them


def fingerprint(known: NodeFacts, wire: Wire | None, image: Image | None) -> dict[str, str]:
    """Name -> value; what can't be read is left out."""
    system, docker = known.system, known.docker
    found = {
        "boot": known.boot_id,
        "system": system.os,
        "DGX OS": system.build,
        "kernel": system.kernel,
        "driver": known.gpus[0].driver if known.gpus else None,
        "Docker": docker.version,
        "compose": docker.compose,
        "firmware": " ".join(sorted({port.firmware for port in known.hca_ports if port.firmware})),
        "memory": f"{known.memory.total >> 20} MiB" if known.memory else None,
        **_link(known, wire),
    }
    if image is not None:
        content = hashlib.sha256(" ".join((*image.layers, image.config)).encode()).hexdigest()
        found[f"image {image.reference}"] = content[:12]
    return {name: value for name, value in found.items() if value}


def _link(known: NodeFacts, wire: Wire | None) -> dict[str, str]:
    if wire is None:
        return {}
    mtu = next(str(each.mtu) for each in known.netdevs if each.name == wire.interface)
    found = {"interface": wire.interface, "address": str(wire.address), "MTU": mtu}
    if wire.hca is not None:
        tables = [usable_indexes(port, known, wire.address) for port in selected_ports(known.hca_ports, wire.hca)]
        found |= {"HCA": wire.hca, "GID index": str(common_index(tables))}
    return found


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Name -> value then and now, of what both know and what differs."""
    return {name: (before[name], now[name]) for name in before if name in now and before[name] != now[name]}
