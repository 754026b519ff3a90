"""Which interfaces of two nodes face each other, judged before an inventory exists: every candidate, and the best.

A candidate is a network that joins a live RDMA port of one node with one of the other. The two halves of one QSFP port
(see docs/architecture.md) are one candidate with two rails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

from dspark_deploy.errors import CheckRefused
from dspark_deploy.facts.link import Heard
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.plan.deployment import NodeName
from dspark_deploy.plan.fabric import Rail
from dspark_deploy.plan.gid import prove_gid, selected_ports

NODES: tuple[NodeName, NodeName] = ("head", "worker")
HEADERS = 28  # bytes of IPv4 and UDP before a datagram's own
Carried = Literal["whole", "small", "one-way", "nothing", "untried"]
_SILENT: tuple[Carried, ...] = ("nothing", "one-way")
_WORST_FIRST: tuple[Carried, ...] = (*_SILENT, "untried", "small", "whole")


@dataclass(frozen=True, slots=True)
class Facing:
    """Two interfaces in one subnet, the head's first, and the narrower end's MTU."""

    head: Rail
    worker: Rail
    mtus: tuple[int, int]
    carried: Carried = "untried"
    problem: str = ""  # why it could not be tried

    @property
    def network(self) -> IPv4Network:
        """The subnet that both are in."""
        return self.head.address.network

    @property
    def interfaces(self) -> tuple[str, str]:
        """Their names."""
        return self.head.interface, self.worker.interface

    @property
    def addresses(self) -> tuple[str, str]:
        """Theirs in that subnet."""
        return str(self.head.address.ip), str(self.worker.address.ip)

    @property
    def size(self) -> int:
        """Bytes of a full datagram, headers not counted."""
        return min(self.mtus) - HEADERS

    def __str__(self) -> str:
        """`enp1s0f0np0 192.168.177.11 - enp1s0f0np0 192.168.177.12`, the head's end first."""
        ends = (f"{rail.interface} {rail.address.ip}" for rail in (self.head, self.worker))
        return " - ".join(ends)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to join the nodes: the rails of one port of each, the first controller's first."""

    rails: tuple[Facing, ...]

    @property
    def first(self) -> Facing:
        """The rail that carries the rendezvous."""
        return self.rails[0]

    @property
    def link_local(self) -> bool:
        """Its addresses are made up by each node when it boots."""
        return self.first.network.is_link_local

    @property
    def merit(self) -> tuple[int, bool, int]:
        """The larger the better: what it carries, whether its addresses stay, whether both halves of a port are in."""
        return max(_WORST_FIRST.index(rail.carried) for rail in self.rails), not self.link_local, len(self.rails)

    @property
    def silent(self) -> bool:
        """Whether it was tried and nothing comes through, on any of its rails."""
        return all(rail.carried in _SILENT for rail in self.rails)

    def __str__(self) -> str:
        return f"{self.first.network} ({'; '.join(map(str, self.rails))})"


def candidates(facts: Mapping[str, NodeFacts]) -> tuple[Candidate, ...]:
    """Every way in which the two nodes face each other. Nothing is sent for it; no way is an empty tuple."""
    ways: dict[tuple[str, str], list[Facing]] = {}
    for facing in _facing(facts):
        ends = facing.head, facing.worker
        ways.setdefault((ends[0].function or ends[0].interface, ends[1].function or ends[1].interface), []).append(
            facing
        )
    every = (Candidate(tuple(_one_each(rails))) for rails in ways.values())
    return tuple(sorted(every, key=lambda each: each.first.head.order))


def live_rails(facts: NodeFacts) -> list[Rail]:
    """The node's interfaces that could carry a fabric: up, with an IPv4 address and a live RDMA port beneath."""
    devices = {port.netdev: port.device for port in selected_ports(facts.hca_ports, "")}
    rails = [
        Rail(netdev.name, address, devices[netdev.name])
        for netdev in facts.netdevs
        if netdev.up and netdev.name in devices
        for address in netdev.addresses
    ]
    return sorted(rails, key=lambda rail: rail.order)


def _facing(facts: Mapping[str, NodeFacts]) -> Iterator[Facing]:
    mtus = {name: {netdev.name: netdev.mtu for netdev in facts[name].netdevs} for name in NODES}
    for here in live_rails(facts["head"]):
        for there in live_rails(facts["worker"]):
            if here.address.network == there.address.network and here.address.ip != there.address.ip:
                yield Facing(here, there, (mtus["head"][here.interface], mtus["worker"][there.interface]))


def _one_each(rails: list[Facing]) -> Iterator[Facing]:
    """Each interface once: where both halves are in one subnet, a half faces the same half."""
    taken: set[str] = set()
    for rail in sorted(rails, key=lambda each: (each.head.order, each.worker.order)):
        if not {f"head {rail.head.interface}", f"worker {rail.worker.interface}"} & taken:
            taken |= {f"head {rail.head.interface}", f"worker {rail.worker.interface}"}
            yield rail


def heard_over(every: tuple[Candidate, ...], heard: Mapping[str, tuple[Heard, ...]]) -> tuple[Candidate, ...]:
    """The candidates with what their datagrams told; the best first."""
    tried = [Candidate(tuple(_with(rail, heard) for rail in each.rails)) for each in every]
    return tuple(sorted(tried, key=lambda each: each.merit, reverse=True))  # of equals the first port stays first


def _with(rail: Facing, heard: Mapping[str, tuple[Heard, ...]]) -> Facing:
    ends = [
        each
        for name, own, peer in (("head", rail.head, rail.worker), ("worker", rail.worker, rail.head))
        for each in heard.get(name, ())
        if (each.interface, each.address, each.peer) == (own.interface, str(own.address.ip), str(peer.address.ip))
    ]
    if len(ends) < len(NODES):
        return Facing(rail.head, rail.worker, rail.mtus, "untried", "it was not tried")
    problem = next((each.problem for each in ends if each.problem), "")
    return Facing(rail.head, rail.worker, rail.mtus, _carried(ends), problem)


def _carried(ends: list[Heard]) -> Carried:
    if any(each.problem for each in ends):
        return "untried"
    small = sum(each.small for each in ends)
    if small < len(ends):
        return "one-way" if small else "nothing"
    return "whole" if all(each.full for each in ends) else "small"


def usable(chosen: Candidate, facts: Mapping[str, NodeFacts]) -> tuple[Candidate, tuple[str, ...]]:
    """The candidate with the rails that serve, and why each other was left out.

    A rail serves that carries what is sent, and whose HCAs share a GID index with the first one's on each node. Raises
    CheckRefused where not even the first has an index.
    """
    silent = [rail for rail in chosen.rails if rail.carried in _SILENT]
    rails = tuple(rail for rail in chosen.rails if rail not in silent)
    why = [f"nothing comes through {rail}" for rail in silent]
    refusal = _no_index(rails, facts)
    if refusal is not None and len(rails) > 1:
        why.append(f"{refusal.message} ({refusal.why})")
        rails, refusal = rails[:1], _no_index(rails[:1], facts)
    if refusal is not None:
        raise refusal
    return Candidate(rails), tuple(why)


def selector(rails: tuple[Facing, ...], side: int) -> str:
    """The exact names of one node's HCAs, as NCCL_IB_HCA takes them."""
    devices = [(rail.head, rail.worker)[side].device or "" for rail in rails]
    return "=" + ",".join(dict.fromkeys(devices))


def _no_index(rails: tuple[Facing, ...], facts: Mapping[str, NodeFacts]) -> CheckRefused | None:
    for side, name in enumerate(NODES):
        end = (rails[0].head, rails[0].worker)[side]
        try:
            prove_gid(facts[name], selector(rails, side), end.address.ip, None)
        except CheckRefused as refusal:
            return refusal
    return None
