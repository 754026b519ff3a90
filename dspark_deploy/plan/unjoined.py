"""Why two nodes are not joined by a fabric, as the one sentence that helps, and what to connect or configure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from dspark_deploy.errors import CheckRefused
from dspark_deploy.facts.node import HcaPort, Netdev, NodeFacts
from dspark_deploy.plan.deployment import NodeName
from dspark_deploy.plan.fabric import function_of
from dspark_deploy.plan.gid import selected_ports
from dspark_deploy.plan.pairing import NODES, Candidate, live_rails

_PROPOSED = IPv4Network("192.168.0.0/16")  # the proposals' own range; NVIDIA's playbooks address the link from it
_FIRST_TRIED = 177
_HOSTS = {"head": 11, "worker": 12}
_KEEP = "that lasts until the next boot: write it into /etc/netplan, too"


@dataclass(frozen=True, slots=True)
class _Port:
    """A port with a link: one interface on a live RDMA device."""

    node: str
    netdev: Netdev

    def __str__(self) -> str:
        addresses = " ".join(map(str, self.netdev.addresses)) or "no IPv4 address"
        return f"{self.node} {self.netdev.name} {addresses}"


def why_unjoined(facts: Mapping[str, NodeFacts]) -> CheckRefused:
    """Of nodes without any candidate. What lies deepest is told: a device, then a cable, then an address."""
    for known in (facts[name] for name in NODES):
        if not known.netdevs:
            return _unread(known)
        if not known.hca_ports:
            return _no_device(known)
    linked = {name: _linked(facts[name]) for name in NODES}
    if not all(linked.values()):
        return _no_cable(facts, linked)
    bare = [port for name in NODES for port in linked[name] if not port.netdev.addresses]
    if any(not live_rails(facts[name]) for name in NODES):
        return _no_address(facts, linked, bare)
    return _apart(facts, linked)


def why_silent(tried: Iterable[Candidate]) -> CheckRefused:
    """Of candidates over which nothing comes through."""
    listed = "\n".join(f"{each}: {_ways(each)}" for each in tried)
    return CheckRefused(
        "the nodes have addresses of one subnet, and nothing that one sends over it reaches the other",
        why=listed,
        remedy="see that the cable joins these two ports and not another machine's, and that no firewall is on them "
        "(`sudo ufw status` on both)",
        check="fabric-carries",
    )


def _ways(candidate: Candidate) -> str:
    return "one way only" if any(rail.carried == "one-way" for rail in candidate.rails) else "nothing either way"


def _linked(facts: NodeFacts) -> list[_Port]:
    netdevs = {netdev.name: netdev for netdev in facts.netdevs if netdev.up}
    live = _in_order(selected_ports(facts.hca_ports, ""))
    return [_Port(facts.node, netdevs[port.netdev]) for port in live if port.netdev in netdevs]


def _in_order(ports: Sequence[HcaPort]) -> list[HcaPort]:
    """The first controller's before the second's: rocep1s0f0, then roceP2p1s0f0."""
    return sorted(ports, key=lambda port: port.device.lower())


def _unread(facts: NodeFacts) -> CheckRefused:
    return CheckRefused(
        f"{facts.node}: its network interfaces could not be read",
        why=facts.missing.get("netdevs", "/sys/class/net is empty"),
        remedy=f"see what `ip addr` says on {facts.node}, then run init again",
        node=facts.node,
        check="fabric-interface",
    )


def _no_device(facts: NodeFacts) -> CheckRefused:
    return CheckRefused(
        f"{facts.node}: it shows no RDMA device, so nothing there can carry the fabric",
        why=facts.missing.get("hca_ports", "/sys/class/infiniband is empty"),
        remedy=f"on {facts.node}: `ibdev2netdev` lists them; load the driver with `sudo modprobe mlx5_ib`",
        node=facts.node,
        check="hca-selector",
    )


def _no_cable(facts: Mapping[str, NodeFacts], linked: Mapping[NodeName, list[_Port]]) -> CheckRefused:
    without = [name for name in NODES if not linked[name]]
    there = next((port for name in NODES for port in linked[name]), None)
    if there is None:
        message = "no cable joins the nodes: no ConnectX-7 port of either has a link"
    else:
        message = f"no cable joins the nodes: no ConnectX-7 port of the {without[0]} has a link"
    why = "\n".join(f"{name} has: {_ports(facts[name])}" for name in NODES)
    names = dict.fromkeys(port.netdev for port in _in_order(facts[without[0]].hca_ports) if port.netdev)
    remedy = "plug the QSFP cable in at both ends, the first port of each"
    if there is not None:
        remedy = f"plug the cable of {there.node} {there.netdev.name} in at the {without[0]}"
    if names:
        remedy += f"; if it is in: `sudo ip link set {next(iter(names))} up` on {' and '.join(without)}"
    return CheckRefused(message, why=why, remedy=remedy, node=without[0] if len(without) == 1 else None, check="cable")


def _ports(facts: NodeFacts) -> str:
    return ", ".join(
        f"{port.device} ({port.netdev or 'no interface'}) {port.state or 'unreadable'}" for port in facts.hca_ports
    )


def _no_address(
    facts: Mapping[str, NodeFacts], linked: Mapping[NodeName, list[_Port]], bare: list[_Port]
) -> CheckRefused:
    """The cable is in, and a node has no address on it."""
    lacking = [name for name in NODES if not live_rails(facts[name])]
    ports = [next(port for port in bare if port.node == name) for name in lacking]
    listed = " and ".join(f"{port.node} {port.netdev.name}" for port in ports)
    has = "has" if len(ports) == 1 else "have"
    return CheckRefused(
        f"the cable is in, and {listed} {has} no IPv4 address",
        why="\n".join(str(port) for name in NODES for port in linked[name]),
        remedy=f"{_commands(facts, linked, lacking)}; {_KEEP}",
        node=lacking[0] if len(lacking) == 1 else None,
        check="fabric-address",
    )


def _apart(facts: Mapping[str, NodeFacts], linked: Mapping[NodeName, list[_Port]]) -> CheckRefused:
    """Both have addresses, and no two of them are in one subnet."""
    why = "\n".join(str(port) for name in NODES for port in linked[name])
    twice = {rail.address.ip for rail in live_rails(facts["head"])} & {
        rail.address.ip for rail in live_rails(facts["worker"])
    }
    if twice:
        message = f"both ends of the cable have the address {min(twice)}"
    else:
        head, worker = (live_rails(facts[name])[0] for name in NODES)
        message = (
            "the ends of the cable are in different subnets: "
            f"head {head.interface} {head.address}, worker {worker.interface} {worker.address}"
        )
    port = next(port for port in linked["worker"] if port.netdev.addresses)
    wanted = live_rails(facts["head"])[0].address
    address = _free_address(wanted.network, "worker", [wanted.ip])
    remedy = (
        f"on worker: sudo ip addr del {port.netdev.addresses[0]} dev {port.netdev.name}; "
        f"sudo ip addr add {address}/{wanted.network.prefixlen} dev {port.netdev.name}; {_KEEP}"
    )
    return CheckRefused(message, why=why, remedy=remedy, check="fabric-subnet")


def _commands(
    facts: Mapping[str, NodeFacts], linked: Mapping[NodeName, list[_Port]], lacking: Sequence[NodeName]
) -> str:
    """How each lacking node gets an address in the other's subnet, or both in one that neither uses."""
    peer = next((name for name in NODES if name not in lacking), None)
    if peer is not None:
        rail = live_rails(facts[peer])[0]
        network, function = rail.address.network, rail.function
        taken = [rail.address.ip]
    else:
        network, function, taken = _free_network(facts), None, []
    words = []
    for name in lacking:
        port = _port(linked[name], function)
        address = _free_address(network, name, taken)
        taken.append(address)
        words.append(f"on {name}: sudo ip addr add {address}/{network.prefixlen} dev {port.netdev.name}")
    return "; ".join(words)


def _port(ports: list[_Port], function: str | None) -> _Port:
    """The port of the same place as the peer's, where there is one: cables mostly go from like to like."""
    return next(
        (port for port in ports if function is not None and function_of(port.netdev.name) == function), ports[0]
    )


def _free_network(facts: Mapping[str, NodeFacts]) -> IPv4Network:
    """One that no interface of either node is in."""
    used = [address.network for known in facts.values() for netdev in known.netdevs for address in netdev.addresses]
    return next(each for each in _networks() if not any(each.overlaps(other) for other in used))


def _networks() -> Iterator[IPv4Network]:
    every = list(_PROPOSED.subnets(new_prefix=24))
    yield from (*every[_FIRST_TRIED:], *every[:_FIRST_TRIED])


def _free_address(network: IPv4Network, node: str, taken: list[IPv4Address]) -> IPv4Address:
    wished = IPv4Interface((int(network.network_address) + _HOSTS[node], network.prefixlen)).ip
    hosts = network.hosts()
    if wished in network and wished not in taken:
        return wished
    return next(each for each in hosts if each not in taken)
