"""Meet two nodes of which nothing is written down yet: what they are, how they are joined, what their caches hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from dspark_deploy.errors import CheckRefused
from dspark_deploy.facts.link import Heard
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.facts.places import CachePlace
from dspark_deploy.flow.observer import Observer
from dspark_deploy.inventory import Inventory
from dspark_deploy.model import Model
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.draft import Draft, Said, cache_values, fabric_values, wiring_notes
from dspark_deploy.plan.first_profile import Chosen, choose_place, choose_profile, image_of
from dspark_deploy.plan.pairing import NODES, Candidate, candidates, heard_over, usable
from dspark_deploy.plan.unjoined import why_silent, why_unjoined
from dspark_deploy.plan.upstream_env import TakenOver
from dspark_deploy.plan.upstream_facts import as_named, hold_against, names
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.watch.acquaint import read_places, try_links
from dspark_deploy.watch.gather import gather


@dataclass(frozen=True, slots=True)
class Met:
    """Both nodes, and what was chosen."""

    facts: Mapping[str, NodeFacts]
    candidates: tuple[Candidate, ...]  # the best first
    heard: Mapping[str, tuple[Heard, ...]]
    chosen: Candidate
    places: Mapping[str, CachePlace]
    profile: Chosen
    taken: TakenOver | None  # less what the nodes contradict
    draft: Draft
    notes: tuple[str, ...]


def meet(
    hosts: Mapping[str, Host],
    seed: Inventory,
    catalogue: Catalogue,
    taken: TakenOver | None,
    observer: Observer,
    clock: Clock,
    *,
    wanted: str | None,
) -> Met:
    """Ask both nodes. `seed` is an inventory with hosts and ports alone, `wanted` the profile to write down.

    Raises NodeUnreachable, StepFailed, and CheckRefused where nothing joins the nodes: it says what to connect.
    """
    observer.begin(3)
    observer.started("read both nodes")
    facts, places = _read(seed, hosts, catalogue, taken, clock)
    observer.finished()
    _refuse_one_machine(facts)
    every = candidates(facts)
    if not every:
        raise why_unjoined(facts)
    observer.started(f"send over {' and '.join(str(each.first.network) for each in every)}")
    heard = try_links(hosts, every, clock)
    tried = heard_over(every, heard)
    observer.finished()
    observer.started("choose")
    met = _choose(facts, places, tried, heard, catalogue, taken, wanted)
    observer.finished(str(met.chosen))
    return met


def _read(
    seed: Inventory, hosts: Mapping[str, Host], catalogue: Catalogue, taken: TakenOver | None, clock: Clock
) -> tuple[dict[str, NodeFacts], dict[str, tuple[CachePlace, ...]]]:
    profiles = list(catalogue.profiles())
    models = [catalogue.model(name) for name in dict.fromkeys(profile.model for profile in profiles)]
    also: dict[str, tuple[str, ...]] = {node: _named_cache(taken, node) for node in NODES}
    places = read_places(hosts, [model.directory for model in models if model.directory], also, clock)
    images = dict.fromkeys(image_of(profile, catalogue) for profile in profiles)
    facts = gather(
        hosts,
        seed.name,
        clock,
        images=tuple(images),
        paths={
            node: tuple(path for place in found for path in (place.hf_home, place.hub))
            for node, found in places.items()
        },
        ports=(seed.api.port, seed.master_port),
    )
    return facts, places


def _named_cache(taken: TakenOver | None, node: str) -> tuple[str, ...]:
    named = taken.inventory.get(f"{node}.hf_home") if taken else None
    return () if named is None else (str(named),)


def _refuse_one_machine(facts: Mapping[str, NodeFacts]) -> None:
    head, worker = facts["head"], facts["worker"]
    if head.boot_id is not None and (head.boot_id, head.hostname) == (worker.boot_id, worker.hostname):
        raise CheckRefused(
            f"head and worker are one machine, {head.hostname}",
            remedy="give the hosts of two machines",
            check="two-machines",
        )


def _choose(
    facts: Mapping[str, NodeFacts],
    places: Mapping[str, Sequence[CachePlace]],
    tried: tuple[Candidate, ...],
    heard: Mapping[str, tuple[Heard, ...]],
    catalogue: Catalogue,
    taken: TakenOver | None,
    wanted: str | None,
) -> Met:
    if all(each.silent for each in tried):
        raise why_silent(tried)
    if taken is not None:
        taken = hold_against(taken, facts, tried, places)
        tried = tuple(sorted(tried, key=partial(_strange, taken)))
    best = tried[0] if taken is None else as_named(taken, tried[0])
    chosen, left_out = usable(best, facts)
    profile = choose_profile(catalogue, facts, places, wanted=wanted, model=_meant(taken, catalogue))
    mounted = {node: _mounted(found, profile, taken, node) for node, found in places.items()}
    draft: dict[str, Said] = {"profile": Said(profile.name, profile.why), **fabric_values(chosen, left_out=left_out)}
    for node, place in mounted.items():
        draft |= cache_values(node, place, profile.model)
    notes = wiring_notes(tried, chosen, left_out, facts)
    return Met(facts, tried, heard, chosen, mounted, profile, taken, draft, notes)


def _meant(taken: TakenOver | None, catalogue: Catalogue) -> Model | None:
    """The checkpoint of an env file, where it is another than its profile's."""
    if taken is None:
        return None
    named = taken.workload.values.get("model")
    return taken.workload.model or (None if named is None else catalogue.model(named))


def _strange(taken: TakenOver, candidate: Candidate) -> bool:
    """Sorts what an env file names, and what carries something, first."""
    return candidate.silent or not names(taken, candidate)


def _mounted(found: Sequence[CachePlace], profile: Chosen, taken: TakenOver | None, node: str) -> CachePlace:
    if taken is not None and f"{node}.hf_home" in taken.inventory:
        return found[0]  # it was asked for, and is there
    return choose_place(found, profile.model)
