"""What an env file of upstream's says of two nodes, held against those nodes: what is not so there is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.facts.places import CachePlace
from dspark_deploy.plan.fabric import Rail
from dspark_deploy.plan.gid import refuse_selector, selected_ports
from dspark_deploy.plan.pairing import NODES, Candidate, Facing
from dspark_deploy.plan.upstream_env import KeyFate, TakenOver

ASKED = "asked for"  # the setting of a place that was named to the node


def hold_against(
    taken: TakenOver,
    facts: Mapping[str, NodeFacts],
    every: Sequence[Candidate],
    places: Mapping[str, Sequence[CachePlace]],
) -> TakenOver:
    """The same without what the nodes contradict."""
    for key, why in [*_wiring(taken, every), *_selectors(taken, facts), *_caches(taken, places)]:
        taken = _without(taken, key, why)
    if not any(names(taken, each) for each in every):  # each end is there, and they don't face each other
        for name in ("interface", "address"):
            taken = _without(taken, f"worker.fabric.{name}", "it does not face what the file says of the head")
    return taken


def names(taken: TakenOver, candidate: Candidate) -> bool:
    """Whether the file means this candidate, as far as it says."""
    return any(_fits(taken, rail) for rail in candidate.rails)


def as_named(taken: TakenOver, candidate: Candidate) -> Candidate:
    """The candidate with the rail first that the file names: it carries the rendezvous."""
    return Candidate(tuple(sorted(candidate.rails, key=lambda rail: not _fits(taken, rail))))


def _fits(taken: TakenOver, rail: Facing) -> bool:
    return all(_said(taken, node, end) for node, end in zip(NODES, (rail.head, rail.worker), strict=True))


def _said(taken: TakenOver, node: str, end: Rail) -> bool:
    known = taken.inventory
    return known.get(f"{node}.fabric.interface") in {None, end.interface} and known.get(f"{node}.fabric.address") in {
        None,
        str(end.address.ip),
    }


def _wiring(taken: TakenOver, every: Sequence[Candidate]) -> Iterator[tuple[str, str]]:
    for side, node in enumerate(NODES):
        ends = [(rail.head, rail.worker)[side] for each in every for rail in each.rails]
        there = {
            "interface": list(dict.fromkeys(end.interface for end in ends)),
            "address": list(dict.fromkeys(str(end.address.ip) for end in ends)),
        }
        for name, found in there.items():
            key = f"{node}.fabric.{name}"
            if key in taken.inventory and taken.inventory[key] not in found:
                yield key, f"the {node} has no such {name} on its fabric; it has {', '.join(found)}"


def _selectors(taken: TakenOver, facts: Mapping[str, NodeFacts]) -> Iterator[tuple[str, str]]:
    for node in NODES:
        key = f"{node}.fabric.hca"
        if key in taken.inventory and refuse_selector(facts[node], str(taken.inventory[key])) is not None:
            there = ", ".join(port.device for port in selected_ports(facts[node].hca_ports, ""))
            yield key, f"no active HCA port of the {node} matches it; it has {there}"


def _caches(taken: TakenOver, places: Mapping[str, Sequence[CachePlace]]) -> Iterator[tuple[str, str]]:
    for node in NODES:
        key = f"{node}.hf_home"
        if key in taken.inventory and not any(place.setting == ASKED and place.there for place in places[node]):
            yield key, f"there is no such folder on the {node}"


def _without(taken: TakenOver, key: str, why: str) -> TakenOver:
    if key not in taken.inventory:
        return taken
    fates = tuple(_dropped(each, key, why) for each in taken.keys)
    return replace(taken, inventory={own: value for own, value in taken.inventory.items() if own != key}, keys=fates)


def _dropped(fate: KeyFate, key: str, why: str) -> KeyFate:
    if fate.to == key:
        return replace(fate, fate="left-out", to="", why=why)
    if fate.name == "HF_CACHE" and key == "worker.hf_home" and fate.fate == "taken":
        return replace(fate, why=f"for the head alone: {why}")
    return fate
