"""How the two nodes are wired to each other: what the inventory says, held against what the nodes have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface

from dspark_deploy.errors import CheckRefused, ConfigError
from dspark_deploy.facts.node import Netdev, NodeFacts
from dspark_deploy.inventory import Fabric, Inventory
from dspark_deploy.plan.deployment import NodeName
from dspark_deploy.plan.gid import prove_gid, refuse_selector, selected_ports

_NODES: tuple[NodeName, NodeName] = ("head", "worker")


@dataclass(frozen=True, slots=True)
class Wire:
    """One node's end of the fabric."""

    interface: str
    address: IPv4Address
    hca: str | None  # None where the family passes no RDMA device
    gid_index: int | None  # None: NCCL chooses


@dataclass(frozen=True, slots=True)
class Rail:
    """An interface that could carry the fabric: up, and with an IPv4 address."""

    interface: str
    address: IPv4Interface
    device: str | None  # the RDMA device beneath it

    @property
    def order(self) -> tuple[str, str]:
        """The first controller's half of a port before the second's: rocep1s0f0, then roceP2p1s0f0."""
        return (self.device or self.interface).lower(), self.interface

    @property
    def function(self) -> str | None:
        """See function_of."""
        return function_of(self.interface)


def function_of(interface: str) -> str | None:
    """What both halves of one port have in common in their names: s0f0."""
    match = re.search(r"s\d+f\d+", interface)
    return match.group() if match else None


@dataclass(frozen=True, slots=True)
class Survey:
    """What inventory and facts say of the link."""

    wires: tuple[Wire, Wire] | None  # the head's first; None: there is a problem, or a node was not asked
    facing: tuple[tuple[Rail, Rail], ...]  # pairs of interfaces in one subnet, the head's first; the chosen pair first
    problems: tuple[CheckRefused, ...]


def wire(
    inventory: Inventory, facts: Mapping[str, NodeFacts], *, rdma: bool, excused: Collection[str] = ()
) -> tuple[Wire, Wire]:
    """Both ends, the head's first. Without facts of both nodes the inventory has to say everything.

    Raises ConfigError where it doesn't, and CheckRefused where nodes and inventory disagree, where no two interfaces
    face each other, and where the selected ports have no usable GID index in common. `excused` are ids of checks: what
    they found is let pass where the ends are known all the same.
    """
    if not all(name in facts for name in _NODES):
        fabrics = _fabrics(inventory)
        head, worker = (_written(name, fabrics[name], rdma=rdma) for name in _NODES)
        return head, worker
    found = survey(inventory, facts, rdma=rdma)
    problem = next((each for each in found.problems if found.wires is None or each.check not in excused), None)
    if problem is not None or found.wires is None:
        raise problem or _nothing_faces(facts)
    return found.wires


def survey(inventory: Inventory, facts: Mapping[str, NodeFacts], *, rdma: bool) -> Survey:
    """How the nodes are wired, or everything that speaks against it."""
    fabrics = _fabrics(inventory)
    there: list[NodeName] = [name for name in _NODES if name in facts]
    problems = [problem for name in there for problem in _contradictions(fabrics[name], facts[name])]
    if not problems and rdma:
        problems = [problem for name in there if (problem := _no_port(fabrics[name], facts[name]))]
    if problems or len(there) < len(_NODES):
        return Survey(None, (), tuple(problems))
    meant = _facing(*(_rails(fabrics[name], facts[name], rdma=rdma) for name in _NODES))
    if not meant:
        return Survey(None, (), (_nothing_faces(facts),))
    chosen = min(meant, key=lambda pair: pair[0].order)
    # The other half of the port counts as well where the inventory names one interface.
    anywhere = (_rails(Fabric(hca=fabrics[name].hca), facts[name], rdma=rdma) for name in _NODES)
    others = sorted({*meant, *_facing(*anywhere)} - {chosen}, key=lambda pair: pair[0].order)
    pairs = [chosen, *others]
    head, worker = (
        _wire(fabrics[name], chosen[side], [pair[side] for pair in pairs], rdma=rdma)
        for side, name in enumerate(_NODES)
    )
    ends = dict(zip(_NODES, (head, worker), strict=True))
    problems = [problem for name in _NODES if (problem := _no_index(facts[name], ends[name]))]
    return Survey((head, worker), tuple(pairs), tuple(problems))


def _fabrics(inventory: Inventory) -> dict[NodeName, Fabric]:
    return {"head": inventory.head.fabric, "worker": inventory.worker.fabric}


def _no_port(fabric: Fabric, facts: NodeFacts) -> CheckRefused | None:
    """Of a selector that the inventory names: an empty one would let every interface pass for none."""
    return None if fabric.hca == "auto" else refuse_selector(facts, fabric.hca)


def _no_index(facts: NodeFacts, end: Wire) -> CheckRefused | None:
    if end.hca is None:
        return None
    try:
        prove_gid(facts, end.hca, end.address, end.gid_index)
    except CheckRefused as problem:
        return problem
    return None


def _written(name: NodeName, fabric: Fabric, *, rdma: bool) -> Wire:
    hca = fabric.hca if rdma else None
    unsaid = [
        key for key in ("interface", "address", "hca") if getattr(fabric, key) == "auto" and (key != "hca" or rdma)
    ]
    if unsaid or fabric.address == "auto":
        keys = ", ".join(f"{name}.fabric.{key}" for key in unsaid)
        raise ConfigError(
            f"{name}: the inventory leaves {keys} to the probe, and the node was not asked",
            remedy=f"write {keys} into the inventory, or run this where both nodes can be reached",
            node=name,
        )
    return Wire(fabric.interface, fabric.address, hca, _pinned(fabric))


def _wire(fabric: Fabric, rail: Rail, facing: list[Rail], *, rdma: bool) -> Wire:
    if not rdma:
        return Wire(rail.interface, rail.address.ip, None, None)
    hca = fabric.hca if fabric.hca != "auto" else _both_halves(rail, facing)
    return Wire(rail.interface, rail.address.ip, hca, _pinned(fabric))


def _pinned(fabric: Fabric) -> int | None:
    return None if fabric.gid_index == "auto" else fabric.gid_index


def _both_halves(rail: Rail, facing: list[Rail]) -> str:
    """Exact names of the HCAs of one port: each controller behind it carries half of the link (F48)."""
    halves = [each for each in facing if each.function is not None and each.function == rail.function]
    devices = [each.device for each in sorted({rail, *halves}, key=lambda each: each.order) if each.device]
    return "=" + ",".join(dict.fromkeys(devices))


def _rails(fabric: Fabric, facts: NodeFacts, *, rdma: bool) -> list[Rail]:
    """The node's interfaces that the inventory allows.

    One that the inventory doesn't name has to lie on a selected HCA, so that the management LAN is never taken for the
    fabric; one that it does name needs an HCA beneath only where the selector is to be found there.
    """
    selector = "" if fabric.hca == "auto" else fabric.hca
    devices = {port.netdev: port.device for port in selected_ports(facts.hca_ports, selector)}
    found_here = fabric.hca == "auto" or fabric.interface == fabric.address == "auto"
    return [
        Rail(netdev.name, address, devices.get(netdev.name))
        for netdev in facts.netdevs
        if netdev.up and fabric.interface in {"auto", netdev.name}
        for address in netdev.addresses
        if not address.is_loopback and fabric.address in {"auto", address.ip}
        if netdev.name in devices or not (rdma and found_here)
    ]


def _facing(head: list[Rail], worker: list[Rail]) -> list[tuple[Rail, Rail]]:
    return [
        (here, there)
        for here in head
        for there in worker
        if here.address.network == there.address.network and here.address.ip != there.address.ip
    ]


def _contradictions(fabric: Fabric, facts: NodeFacts) -> Iterator[CheckRefused]:
    """What the inventory says about one node, against that node: the first thing that is not so."""
    there = {netdev.name: netdev for netdev in facts.netdevs}
    owner = next((each for each in facts.netdevs for address in each.addresses if address.ip == fabric.address), None)
    if fabric.interface == "auto":
        if fabric.address != "auto" and owner is None:
            yield _disagrees(facts, "address", f"no interface has the address {fabric.address}")
        return
    netdev = there.get(fabric.interface)
    if netdev is None:
        yield _disagrees(facts, "interface", f"there is no interface {fabric.interface}")
    elif not netdev.up:
        yield _disagrees(facts, "interface", f"interface {netdev.name} is down")
    elif not netdev.addresses:
        yield _disagrees(facts, "interface", f"interface {netdev.name} has no IPv4 address")
    elif fabric.address != "auto" and owner is not netdev:
        has = ", ".join(str(each.ip) for each in netdev.addresses)
        yield _disagrees(facts, "address", f"{netdev.name} has {has}, not {fabric.address}")


def _disagrees(facts: NodeFacts, key: str, message: str) -> CheckRefused:
    return CheckRefused(
        f"{facts.node}: {message}",
        why=f"there is: {_listed(facts)}",
        remedy=f"correct {facts.node}.fabric.{key} in the inventory, or leave it out",
        node=facts.node,
        check=f"fabric-{key}",
    )


def _nothing_faces(facts: Mapping[str, NodeFacts]) -> CheckRefused:
    why = "\n".join(f"{name} has: {_listed(facts[name])}" for name in _NODES)
    return CheckRefused(
        "no two interfaces of the nodes face each other: up, in one subnet, with an RDMA device beneath",
        why=why,
        remedy="give both ends of the cable an IPv4 address of one subnet, or name them in the inventory",
        check="fabric-subnet",
    )


def _listed(facts: NodeFacts) -> str:
    devices = {port.netdev: port.device for port in facts.hca_ports}
    listed = [_described(each, devices.get(each.name)) for each in facts.netdevs if each.name != "lo"]
    return "; ".join(listed) or facts.missing.get("netdevs", "no interface")


def _described(netdev: Netdev, device: str | None) -> str:
    addresses = " ".join(str(each) for each in netdev.addresses) or "no IPv4"
    return f"{netdev.name} {'up' if netdev.up else 'down'} {addresses}{f' {device}' if device else ''}"
