"""The size of what the link carries, on each of its rails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, doubtful, fine, unknown
from dspark_deploy.facts.node import Netdev, NodeFacts
from dspark_deploy.plan.gid import selected_ports

NODES = ("head", "worker")
HEADERS = 28  # bytes of IPv4 and UDP before a datagram's own
PEER = {"head": "worker", "worker": "head"}


@dataclass(frozen=True, slots=True)
class Ends:
    """Two interfaces that face each other and are used, the head's first. `size` is a full datagram's, in bytes."""

    interfaces: tuple[str, str]
    addresses: tuple[str, str]
    mtus: tuple[int, int]

    @property
    def size(self) -> int:
        """What fits through the narrower end."""
        return min(self.mtus) - HEADERS


def used_rails(case: Case) -> tuple[Ends, ...]:
    """The chosen pair of interfaces, and those of the other HCAs that are selected on both nodes."""
    wires = case.survey.wires
    if wires is None:
        return ()
    used = [_netdevs_of(case.facts[node], wire.hca, wire.interface) for node, wire in zip(NODES, wires, strict=True)]
    return tuple(
        Ends(
            (head.interface, worker.interface),
            (str(head.address.ip), str(worker.address.ip)),
            (_netdev(case.facts["head"], head.interface).mtu, _netdev(case.facts["worker"], worker.interface).mtu),
        )
        for head, worker in case.survey.facing
        if head.interface in used[0] and worker.interface in used[1]
    )


def _netdevs_of(known: NodeFacts, hca: str | None, interface: str) -> set[str | None]:
    return {interface, *(port.netdev for port in selected_ports(known.hca_ports, hca))} if hca else {interface}


def _netdev(known: NodeFacts, name: str) -> Netdev:
    return next(each for each in known.netdevs if each.name == name)


def _equal(case: Case) -> Iterator[Verdict]:
    for rail in used_rails(case):
        head, worker = (
            f"{node} {name} {mtu}" for node, name, mtu in zip(NODES, rail.interfaces, rail.mtus, strict=True)
        )
        if rail.mtus[0] == rail.mtus[1]:
            yield fine(f"both ends of {rail.interfaces[0]} have MTU {rail.mtus[0]}")
        else:
            most = max(rail.mtus)
            remedy = f"set both to {most}: sudo ip link set … mtu {most}, and in netplan, since it is lost on a restart"
            yield bad(f"the ends of the link differ in MTU: {head}, {worker}", remedy)


def _carried(case: Case) -> Iterator[Verdict]:
    """Told by datagrams that no hop may cut, in each direction. Ends that differ in MTU have been told already."""
    equal = {rail.interfaces for rail in used_rails(case) if rail.mtus[0] == rail.mtus[1]}
    for side, node in enumerate(NODES):
        for heard in case.heard.get(node, ()):
            if heard.interface not in {names[side] for names in equal}:
                continue
            way = f"from {PEER[node]} to {node} over {heard.interface}"
            if heard.problem:
                yield unknown(f"{node}: nothing could be sent over {heard.interface}: {heard.problem}", node)
            elif not heard.small:
                remedy = "see that the cable joins these two ports, and that no firewall is on the fabric"
                yield doubtful(f"no datagram came {way}", remedy, node, covers=("F46",))
            elif not heard.full:
                message = f"datagrams of {heard.size + HEADERS} bytes do not come {way}, small ones do"
                remedy = "give every hop the same MTU, or both ends the one that is carried"
                yield bad(message, remedy, node, covers=("F49",))
            else:
                yield fine(f"whole frames of {heard.size + HEADERS} bytes come {way}", node)


CHECKS = (
    Check("fabric-mtu", "fabric", "fail", ("F49",), _equal),
    Check("fabric-carries", "fabric", "fail", ("F46", "F49"), _carried),
)
