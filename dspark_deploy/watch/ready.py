"""Is a node ready for a rank? After a boot its engine is there before its fabric, and memory comes back late."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from dspark_deploy.checks.memory import gib, wanted_bytes
from dspark_deploy.facts.node import Memory, NodeFacts

# As this tool renders them (see render/): its own files are read here, nobody else's.
_HOST_IP = re.compile(r'^VLLM_HOST_IP="([0-9.]+)"$', re.MULTILINE)
_UTILIZATION = re.compile(r'"--gpu-memory-utilization", "([0-9.]+)"')


@dataclass(frozen=True, slots=True)
class Needs:
    """What a release wants of one node. None: its files don't say."""

    address: IPv4Address | None = None  # on the fabric
    utilization: float | None = None  # share of the node's memory


def needs_of(files: Mapping[str, str] | None) -> Needs:
    """By a release's files on that node; None where it keeps none."""
    kept = files or {}
    address, utilization = _HOST_IP.search(kept.get(".env", "")), _UTILIZATION.search(kept.get("compose.yaml", ""))
    return Needs(
        IPv4Address(address[1]) if address else None,
        float(utilization[1]) if utilization else None,
    )


def missing(known: NodeFacts, needs: Needs, *, runs: bool) -> tuple[str, ...]:
    """What the node lacks now. `runs`: a rank of the pair runs there, whose memory comes back with its stop."""
    memory = known.memory if needs.utilization and not runs else None
    lacking = [*_fabric(known, needs.address)]
    if memory is not None and needs.utilization is not None:
        lacking += _memory(known.node, memory, needs.utilization)
    return tuple(lacking)


def _fabric(known: NodeFacts, address: IPv4Address | None) -> Iterator[str]:
    if address is None:
        return
    netdev = next((each for each in known.netdevs if address in {own.ip for own in each.addresses}), None)
    if netdev is None:
        yield f"{known.node}: no interface has the fabric address {address} yet"
    elif not netdev.up:
        yield f"{known.node}: {netdev.name} with the fabric address {address} has no link"
    for port in known.hca_ports:
        if netdev is not None and port.netdev == netdev.name and port.state not in {None, "ACTIVE"}:
            yield f"{known.node}: RDMA port {port.device} is {port.state}"


def _memory(node: str, memory: Memory, utilization: float) -> Iterator[str]:
    wanted = wanted_bytes(utilization, memory)
    if memory.available < wanted:
        yield f"{node}: {gib(memory.available)} of memory are available, and its rank takes {gib(wanted)}"
