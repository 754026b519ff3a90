"""A new inventory, value by value, each with the reason why it stands there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.facts.places import CachePlace
from dspark_deploy.model import Model
from dspark_deploy.plan.pairing import HEADERS, NODES, Candidate, Facing, selector

ASSUMED_PREFIX = 24  # what an inventory that names no prefix means
GIB = 2**30
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Said:
    """One value and its reason; an empty reason needs none."""

    value: Value
    why: str = ""


Draft = Mapping[str, Said]  # `head.fabric.interface` -> what an inventory says there; what is missing is left out

OF_THE_PAIR: Draft = {
    "api.bind": Said("0.0.0.0", "everyone who reaches the head; 127.0.0.1: only the head itself"),  # noqa: S104  published
    "api.port": Said(8888),
    "api.key_file": Said(None, "API keys come later"),
    "master_port": Said(25000, "the rendezvous, on the head's fabric address"),
    "restart": Said("no", "dspark owns the lifecycle: a rank that docker revives alone leaves a split pair"),
}


_OF_A_NODE = (
    "host",
    *(f"fabric.{key}" for key in ("interface", "address", "prefix", "hca", "gid_index")),
    "hf_home",
    "hub_cache",
)
ORDER = (
    *("name", "profile", "ssh_config"),
    *(f"{node}.{key}" for node in NODES for key in _OF_A_NODE),
    *OF_THE_PAIR,
)  # as an inventory has them


def fabric_values(chosen: Candidate, *, left_out: tuple[str, ...]) -> dict[str, Said]:
    """Both nodes' wiring."""
    values: dict[str, Said] = {}
    for side, node in enumerate(NODES):
        values |= {f"{node}.fabric.{key}": said for key, said in _end(chosen, side, left_out)}
    return values


def _end(chosen: Candidate, side: int, left_out: tuple[str, ...]) -> Iterator[tuple[str, Said]]:
    first = chosen.first
    own, peer = (first.head, first.worker) if side == 0 else (first.worker, first.head)
    yield "interface", Said(own.interface, f"MTU {first.mtus[side]}; faces the {NODES[1 - side]}'s {peer.interface}")
    if chosen.link_local:
        yield "address", Said("auto", f"{own.address.ip} now; link-local, so it is looked up at each start")
    else:
        yield "address", Said(str(own.address.ip), f"in {first.network}; {_came(first)}")
        if own.address.network.prefixlen != ASSUMED_PREFIX:
            yield "prefix", Said(own.address.network.prefixlen, "of its subnet")
    halves = "both halves of the port" if len(chosen.rails) > 1 else "the one device of the port that serves"
    yield "hca", Said(selector(chosen.rails, side), f"{halves}{'; see above' if left_out else ''}")
    yield "gid_index", Said("auto", "the ports' common index moves when a node boots: proven at each start")


def _came(rail: Facing) -> str:
    match rail.carried:
        case "whole":
            return f"whole frames of {rail.size + HEADERS} bytes come through, both ways"
        case "small":
            return f"small datagrams come through, frames of {rail.size + HEADERS} bytes do not"
        case _:
            return f"not tried: {rail.problem}"


def cache_values(node: str, place: CachePlace, model: Model) -> dict[str, Said]:
    """Which cache a node's rank mounts."""
    holds = (
        f"holds {model.id or model.directory}" if place.holds(model) else f"{model.id or model.directory} is not there"
    )
    free = f", {place.free_bytes // GIB} GiB free" if place.free_bytes is not None else ""
    values = {f"{node}.hf_home": Said(place.hf_home, f"{place.setting}; {holds}{free}")}
    if place.hub_elsewhere:
        values[f"{node}.hub_cache"] = Said(place.hub, place.setting)
    return values


def wiring_notes(
    every: tuple[Candidate, ...], chosen: Candidate, left_out: tuple[str, ...], facts: Mapping[str, NodeFacts]
) -> tuple[str, ...]:
    """What the user should know of the choice: other networks, halves that stay unused, addresses that change."""
    return tuple(_notes(every, chosen, left_out, facts))


def _notes(
    every: tuple[Candidate, ...], chosen: Candidate, left_out: tuple[str, ...], facts: Mapping[str, NodeFacts]
) -> Iterator[str]:
    others = [each for each in every if not set(chosen.rails) & set(each.rails)]
    if others:
        listed = " and ".join(map(str, others))
        yield (
            f"{len(every)} networks join the nodes: {chosen} is taken, {_because(chosen, others[0])}; "
            f"to use {listed}, write its interfaces, addresses and HCAs here"
        )
    if chosen.link_local:
        yield (
            "the fabric has only link-local addresses, which change when a node boots: they are looked up at each "
            "start; give both ends fixed addresses of one subnet"
        )
    for each in left_out:
        yield f"half of the port's bandwidth is left out: {each}"
    for side, node in enumerate(NODES):
        yield from _overlaps(facts[node], chosen, side)


def _because(chosen: Candidate, other: Candidate) -> str:
    if chosen.merit == other.merit:
        return "since its port comes first"
    if chosen.merit[0] != other.merit[0]:
        return "since more comes through it"
    return "since its addresses stay" if chosen.merit[1] != other.merit[1] else "since both halves of its port are in"


def _overlaps(facts: NodeFacts, chosen: Candidate, side: int) -> Iterator[str]:
    """Another interface in the fabric's subnet: the kernel may send what is meant for the fabric over that one."""
    used = {(rail.head, rail.worker)[side].interface: rail.network for rail in chosen.rails}
    if chosen.link_local:
        return
    for netdev in facts.netdevs:
        if netdev.name in used or not netdev.up:
            continue
        shared = [
            address for address in netdev.addresses if any(address.network.overlaps(net) for net in used.values())
        ]
        if shared:
            yield (
                f"{facts.node}: {netdev.name} {shared[0]} is in the fabric's subnet too, so the kernel may take the "
                "slow way: give the fabric a subnet of its own"
            )
