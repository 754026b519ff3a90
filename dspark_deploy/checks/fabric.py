"""The link as NCCL will use it: interfaces, addresses, HCAs and GIDs, each held against its own node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, doubtful, fine
from dspark_deploy.facts.node import HcaPort, NodeFacts
from dspark_deploy.plan.deployment import NodeName
from dspark_deploy.plan.fabric import Wire, function_of
from dspark_deploy.plan.gid import selected_ports

NODES: tuple[NodeName, NodeName] = ("head", "worker")
LANES = 4  # of each of the two controllers behind a port


def _problem(check: str, good: Callable[[NodeName, Wire], str]) -> Callable[[Case], Iterator[Verdict]]:
    """A judge: what the survey found under this check's id, or what is good about each node."""

    def judge(case: Case) -> Iterator[Verdict]:
        for problem in case.survey.problems:
            if problem.check == check:
                why = "; ".join(problem.why.splitlines())
                yield bad(f"{problem.message} ({why})" if why else problem.message, problem.remedy, problem.node)
        for node, wire in _ends(case):
            if message := good(node, wire):
                yield fine(message, node)

    return judge


def _ends(case: Case) -> Iterator[tuple[NodeName, Wire]]:
    yield from zip(NODES, case.survey.wires or (), strict=False)


def _index(node: NodeName, wire: Wire) -> str:
    if wire.hca is None:
        return ""
    chosen = "NCCL chooses it" if wire.gid_index is None else f"index {wire.gid_index} is pinned"
    return f"{node}: the ports of {wire.hca} share a usable RoCE v2 GID index; {chosen}"


def _halves(case: Case) -> Iterator[Verdict]:
    """One QSFP port is two controllers; one of them alone carries half of the link."""
    for node, wire in _ends(case):
        if wire.hca is None:
            continue
        known = case.facts[node]
        chosen = {port.device for port in selected_ports(known.hca_ports, wire.hca)}
        halves = _port_of(known, wire)
        left_out = [port for port in halves if port.device not in chosen]
        if not left_out:
            yield fine(f"{node}: {' and '.join(sorted(chosen))} carry the link", node)
        elif any(port.state == "ACTIVE" for port in left_out):
            names = ",".join(sorted(port.device for port in halves))
            message = f"{node}: {wire.hca} leaves {left_out[0].device} out, and with it half of the port's bandwidth"
            yield bad(message, f'set {node}.fabric.hca to "={names}", with an IPv4 address on each half', node)
        else:
            message = f"{node}: {left_out[0].device} is {left_out[0].state}, and with it half of the port's bandwidth"
            yield doubtful(message, f"on {node}: bring {left_out[0].netdev} up and give it an IPv4 address", node)


def _port_of(known: NodeFacts, wire: Wire) -> list[HcaPort]:
    """The HCA ports of the QSFP port that the wire's interface belongs to."""
    function = function_of(wire.interface)
    return [port for port in known.hca_ports if port.netdev and function and function_of(port.netdev) == function]


def _lanes(case: Case) -> Iterator[Verdict]:
    for node, port in _selected(case):
        if port.link_width is None:
            continue
        most = port.most_lanes or LANES
        if port.link_width < most:
            message = f"{node}: {port.device} runs on {port.link_width} of {most} PCIe lanes"
            yield bad(message, f"update the firmware of {node}, then power it off and on", node)
        else:
            yield fine(f"{node}: {port.device} runs on {port.link_width} PCIe lanes", node)


def _errors(case: Case) -> Iterator[Verdict]:
    for node, port in _selected(case):
        if port.pcie_errors:
            message = f"{node}: {port.device} has had {port.pcie_errors} PCIe errors since the node booted"
            yield bad(message, f"on {node}: reseat the cable, update the firmware; sudo dmesg | grep -i aer", node)


def _selected(case: Case) -> Iterator[tuple[NodeName, HcaPort]]:
    for node, wire in _ends(case):
        if wire.hca is not None:
            yield from ((node, port) for port in selected_ports(case.facts[node].hca_ports, wire.hca))


CHECKS = (
    Check(
        "fabric-interface",
        "fabric",
        "fail",
        ("F45",),
        _problem("fabric-interface", lambda n, w: f"{n}: {w.interface} is up"),
    ),
    Check(
        "fabric-address",
        "fabric",
        "fail",
        ("F47",),
        _problem("fabric-address", lambda n, w: f"{n}: it has {w.address}"),
    ),
    Check("fabric-subnet", "fabric", "fail", ("F46",), _problem("fabric-subnet", lambda _n, _w: "")),
    Check("hca-selector", "fabric", "fail", ("F43",), _problem("hca-selector", lambda _n, _w: "")),
    Check("gid-common", "fabric", "fail", ("F44",), _problem("gid-common", _index)),
    Check("gid-pinned", "fabric", "fail", ("F42",), _problem("gid-pinned", lambda _n, _w: "")),
    Check("fabric-halves", "fabric", "warn", ("F48",), _halves),
    Check("pcie-lanes", "fabric", "warn", ("F48",), _lanes),
    Check("pcie-errors", "fabric", "warn", ("F57",), _errors),
)
