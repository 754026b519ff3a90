"""Which profile a new inventory names, and which of a node's caches it mounts: what can be started comes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.facts.places import CachePlace
from dspark_deploy.model import Model
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.profile import Profile

DEFAULT = "agent-1m"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A profile, and what speaks for it."""

    name: str
    model: Model
    why: str
    startable: bool  # image and model are on both nodes
    lacking: tuple[str, ...]  # nodes without the model, a sentence each


def image_of(profile: Profile, catalogue: Catalogue) -> str:
    """The plain tag that a profile starts."""
    return (profile.image or catalogue.family(profile.family).image).partition("@")[0]


def choose_profile(
    catalogue: Catalogue,
    facts: Mapping[str, NodeFacts],
    places: Mapping[str, Sequence[CachePlace]],
    *,
    wanted: str | None,
    model: Model | None = None,
) -> Chosen:
    """`wanted`, with `model` for its own; else the default one; else, where that can't start, one that can."""
    named = catalogue.profile(wanted or DEFAULT).profile
    if wanted is not None:
        return _chosen(named, catalogue, facts, places, "as asked for", model)
    first = _chosen(named, catalogue, facts, places, "the default lane; its image and model are on both nodes")
    if first.startable:
        return first
    for other in catalogue.profiles():
        chosen = _chosen(other, catalogue, facts, places, f"its image and model are on both nodes, not {named.name}'s")
        if chosen.startable:
            return chosen
    return replace(first, why="the default lane")


def choose_place(places: Sequence[CachePlace], model: Model) -> CachePlace:
    """The first that holds the model, else the first that is there, else the usual one."""
    holding = [place for place in places if place.holds(model)]
    there = [place for place in places if place.there and place.writable]
    return next(iter((*holding, *there, *(place for place in places if place.setting == "the usual place"))))


def _chosen(
    profile: Profile,
    catalogue: Catalogue,
    facts: Mapping[str, NodeFacts],
    places: Mapping[str, Sequence[CachePlace]],
    why: str,
    model: Model | None = None,
) -> Chosen:
    image, model = image_of(profile, catalogue), model or catalogue.model(profile.model)
    imaged = all(any(each.reference == image for each in known.images) for known in facts.values())
    lacking = tuple(_without(model, places))
    return Chosen(profile.name, model, why, imaged and not lacking, lacking)


def _without(model: Model, places: Mapping[str, Sequence[CachePlace]]) -> Iterator[str]:
    for node, found in places.items():
        if not any(place.holds(model) for place in found):
            yield f"{node}: {model.id or model.directory} is in none of its caches: see `dspark verify-cache`"
