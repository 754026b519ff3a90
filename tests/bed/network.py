"""The bed's cables: three network namespaces, the LAN and the fabric between the nodes.

Every cable runs through a bridge in the LAN's namespace, so that pulling one leaves both ends up and without carrier.
The bridges do not live in the root namespace: once any dockerd has run there, frames between bridge ports are dropped.
There is no netem in some kernels that this runs on, so nothing here adds latency or loss.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from .keeper import GUARDED, Names

LAN_ADDRESS = "10.77.0.254"  # of the client under test


@dataclass(frozen=True, slots=True)
class Cable:
    """One wired port of a node, its other end included."""

    node: str  # the namespace of the node's end
    lan: str  # of the other one
    interface: str
    address: str | None  # with prefix length; None is a port without a cable
    port: str  # the other end's name
    bridge: str
    mtu: int = 1500


def cables(names: Names, role: str, number: int) -> dict[str, Cable]:
    """The ports of a node. `number` is the last part of its addresses."""

    def cable(interface: str, address: str | None, port: str, bridge: str, mtu: int) -> Cable:
        return Cable(names.namespace(role), names.lan, interface, address, f"{role[0]}-{port}", bridge, mtu)

    return {
        "lan": cable("enP7s7", f"10.77.0.{number}/24", "lan", "br-lan", 1500),
        "fabric": cable("enp1s0f0np0", f"192.168.177.{10 + number}/24", "f0", "br-f0", 9000),
        "fabric2": cable("enP2p1s0f0np0", f"192.168.178.{10 + number}/24", "p2f0", "br-p2f0", 9000),
        "spare": cable("enp1s0f1np1", None, "f1", "br-none", 9000),
        "spare2": cable("enP2p1s0f1np1", None, "p2f1", "br-none", 9000),
    }


def build(names: Names, every: Iterable[Cable]) -> None:
    """Make the namespaces, bridges and cables."""
    every = tuple(every)
    _batch(None, [f"netns add {name}" for name in names.namespaces])
    _build_lan(names.lan, {cable.bridge: cable.mtu for cable in every})
    for cable in every:
        _lay(cable)
    for name in names.namespaces:
        _batch(name, ["link set lo up"])
    guards = [f"route replace unreachable {network} metric {names.guard_metric}" for network in GUARDED]
    _batch(None, guards)


def _build_lan(lan: str, bridges: dict[str, int]) -> None:
    lines = [f"addr add {LAN_ADDRESS}/24 dev br-lan"]
    for name, mtu in bridges.items():
        lines = [f"link add {name} mtu {mtu} type bridge", f"link set {name} up", *lines]
    _batch(lan, lines)


def _lay(cable: Cable) -> None:
    mtu = f"mtu {cable.mtu}"
    other = f"type veth peer {cable.port} {mtu} netns {cable.lan}"
    _batch(None, [f"link add {cable.interface} {mtu} netns {cable.node} {other}"])
    _batch(cable.lan, [f"link set {cable.port} master {cable.bridge}{' up' if cable.address else ''}"])
    lines = [f"link set {cable.interface} up"]
    if cable.address:
        lines.append(f"addr add {cable.address} dev {cable.interface}")
    _batch(cable.node, lines)


def plug(cable: Cable, *, connected: bool) -> None:
    """Put a cable in or pull it: the node's interface stays up and gains or loses its carrier."""
    _batch(cable.lan, [f"link set {cable.port} {'up' if connected else 'down'}"])


def set_mtu(cable: Cable, *, end: int | None = None, hop: int | None = None) -> None:
    """Give a node's interface, or the port on the other side of its cable, another MTU; None is the cable's own."""
    _batch(cable.node, [f"link set {cable.interface} mtu {end or cable.mtu}"])
    _batch(cable.lan, [f"link set {cable.port} mtu {hop or cable.mtu}"])


def set_address(cable: Cable, address: str | None) -> None:
    """Give a node's interface another IPv4 address in place of all that it has, or none; the link's own IPv6 stays."""
    lines = [f"addr flush dev {cable.interface} scope global"]
    if address:
        lines.append(f"addr add {address} dev {cable.interface}")
    _batch(cable.node, lines)


def _batch(namespace: str | None, lines: list[str]) -> None:
    where = ["-n", namespace] if namespace else []
    argv = ["ip", *where, "-batch", "-"]
    done = subprocess.run(argv, input="\n".join(lines), check=False, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
