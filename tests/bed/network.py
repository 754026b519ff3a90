"""The bed's cables: three network namespaces, the LAN and the fabric between the nodes.

Every cable runs through a bridge in `spark-lan`, so that pulling one leaves both ends up and without carrier. The
bridges do not live in the root namespace: once any dockerd has run there, frames between bridge ports are dropped.
There is no netem in some kernels that this runs on, so nothing here adds latency or loss.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from .keeper import GUARD_METRIC, GUARDED

LAN = "spark-lan"
LAN_ADDRESS = "10.77.0.254"  # of the client under test


@dataclass(frozen=True, slots=True)
class Cable:
    """One wired port of a node, its end in `spark-lan` included."""

    interface: str
    address: str | None  # with prefix length; None is a port without a cable
    port: str  # the other end's name in spark-lan
    bridge: str
    mtu: int = 1500


def cables(letter: str, number: int) -> dict[str, Cable]:
    """The ports of a node: `letter` tells its ends in spark-lan apart, `number` is the last part of its addresses."""
    return {
        "lan": Cable("enP7s7", f"10.77.0.{number}/24", f"{letter}-lan", "br-lan"),
        "fabric": Cable("enp1s0f0np0", f"192.168.177.{10 + number}/24", f"{letter}-f0", "br-f0", 9000),
        "fabric2": Cable("enP2p1s0f0np0", f"192.168.178.{10 + number}/24", f"{letter}-p2f0", "br-p2f0", 9000),
        "spare": Cable("enp1s0f1np1", None, f"{letter}-f1", "br-none", 9000),
        "spare2": Cable("enP2p1s0f1np1", None, f"{letter}-p2f1", "br-none", 9000),
    }


def build(nodes: dict[str, dict[str, Cable]]) -> None:
    """Make the namespaces, bridges and cables. `nodes`: name of a namespace -> its cables."""
    _batch(None, [f"netns add {name}" for name in (LAN, *nodes)])
    every = [cable for node in nodes.values() for cable in node.values()]
    bridges = {cable.bridge: cable.mtu for cable in every}
    _batch(
        LAN,
        [
            line
            for name, mtu in bridges.items()
            for line in (f"link add {name} mtu {mtu} type bridge", f"link set {name} up")
        ]
        + [f"addr add {LAN_ADDRESS}/24 dev br-lan", "link set lo up"],
    )
    _batch(
        None,
        [
            f"link add {cable.interface} mtu {cable.mtu} netns {name} type veth "
            f"peer {cable.port} mtu {cable.mtu} netns {LAN}"
            for name, node in nodes.items()
            for cable in node.values()
        ],
    )
    _batch(
        LAN,
        [f"link set {cable.port} master {cable.bridge}{' up' if cable.address else ''}" for cable in every],
    )
    for name, node in nodes.items():
        lines = ["link set lo up"]
        for cable in node.values():
            lines.append(f"link set {cable.interface} up")
            if cable.address:
                lines.append(f"addr add {cable.address} dev {cable.interface}")
        _batch(name, lines)
    _batch(None, [f"route replace unreachable {network} metric {GUARD_METRIC}" for network in GUARDED])


def plug(cable: Cable, *, connected: bool) -> None:
    """Put a cable in or pull it: the node's interface stays up and gains or loses its carrier."""
    _batch(LAN, [f"link set {cable.port} {'up' if connected else 'down'}"])


def set_mtu(node: str, cable: Cable, *, end: int | None = None, hop: int | None = None) -> None:
    """Give a node's interface, or the port on the other side of its cable, another MTU; None is the cable's own."""
    _batch(node, [f"link set {cable.interface} mtu {end or cable.mtu}"])
    _batch(LAN, [f"link set {cable.port} mtu {hop or cable.mtu}"])


def set_address(namespace: str, cable: Cable, address: str | None) -> None:
    """Give a node's interface another IPv4 address in place of all that it has, or none; the link's own IPv6 stays."""
    lines = [f"addr flush dev {cable.interface} scope global"]
    if address:
        lines.append(f"addr add {address} dev {cable.interface}")
    _batch(namespace, lines)


def _batch(namespace: str | None, lines: list[str]) -> None:
    where = ["-n", namespace] if namespace else []
    argv = ["ip", *where, "-batch", "-"]
    done = subprocess.run(argv, input="\n".join(lines), check=False, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
