"""Inventory, profile, model, family, overrides and facts become one deployment."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from dspark_deploy.bundled import named_in
from dspark_deploy.errors import ConfigError
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.family import Family
from dspark_deploy.inventory import Inventory, Node
from dspark_deploy.model import Model
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.deployment import Deployment, Endpoint, NodeName, Override, Rank
from dspark_deploy.plan.doubts import doubts
from dspark_deploy.plan.fabric import Wire, wire
from dspark_deploy.plan.patches import Carried
from dspark_deploy.plan.refusals import refuse_impossible
from dspark_deploy.profile import Applied, Profile, Resolved
from dspark_deploy.strict import Data, Given

_DISCOVERED = "read off the node"


@dataclass(frozen=True, slots=True)
class Workload:
    """What to serve, before any node is looked at."""

    profile: Profile
    model: Model
    family: Family
    image: str
    digest: str | None
    sources: Mapping[str, str]
    overrides: tuple[Override, ...]


def resolve_workload(catalogue: Catalogue, profile: str, given: Sequence[Given] = ()) -> Workload:
    """A profile with its model, family and image. `given` are overrides, the strongest first.

    Raises ConfigError with file, line and key, or with the flag or variable that is to blame.
    """
    resolved = catalogue.profile(profile, given)
    resolved = _on_another_family(resolved)
    with named_in(lambda: resolved.sources["family"]):
        family = catalogue.family(resolved.profile.family)
    image, digest = _image(resolved, family)
    overrides = tuple(_override(each) for each in resolved.applied)
    with named_in(lambda: resolved.sources["model"]):
        model = catalogue.model(resolved.profile.model)
    return Workload(resolved.profile, model, family, image, digest, resolved.sources, overrides)


def resolve(
    inventory: Inventory,
    catalogue: Catalogue,
    workload: Workload,
    facts: Mapping[str, NodeFacts] | None = None,
    *,
    excused: Collection[str] = (),
    keyed: bool = False,
    patches: tuple[Carried, ...] = (),
) -> Deployment:
    """The deployment. Without facts (of "head" and "worker") the inventory has to be complete. The catalogue only
    tells what other families know, for refusals and doubts. `keyed`: there is a key for the API to ask for.

    Raises ConfigError for what can't be meant or can't work, CheckRefused where a node's facts speak against it.
    """
    known = facts or {}
    head, worker = wire(inventory, known, rdma=workload.family.rdma, excused=excused)
    deployment = Deployment(
        pair=inventory.name,
        profile=workload.profile,
        model=workload.model,
        family=workload.family,
        image=workload.image,
        digest=workload.digest,
        ranks=(
            _rank(0, "head", inventory.head, head, known),
            _rank(1, "worker", inventory.worker, worker, known),
        ),
        api=Endpoint(inventory.api.bind, inventory.api.port),
        master_port=inventory.master_port,
        offline=True,  # nothing is fetched while a pair boots: F16
        restart=inventory.restart,
        sources={
            **workload.sources,
            **_wiring_sources("head", inventory.head),
            **_wiring_sources("worker", inventory.worker),
        },
        overrides=workload.overrides,
        keyed=keyed,
        patches=patches,
    )
    refuse_impossible(deployment, catalogue)
    return replace(deployment, warnings=doubts(deployment, catalogue))


def _on_another_family(resolved: Resolved) -> Resolved:
    """A profile's own tag is one of its own family's: where an override changes that, the tag goes with it."""
    overridden = {each.key: each for each in resolved.applied}
    family = overridden.get("family")
    if family is None or family.value == family.replaced or "image" in overridden or resolved.profile.image is None:
        return resolved
    profile = resolved.profile.model_copy(update={"image": None})
    return replace(resolved, profile=profile, sources={**resolved.sources, "image": family.source})


def _image(resolved: Resolved, family: Family) -> tuple[str, str | None]:
    """The plain tag that compose gets, and the digest that belongs to it where one is known."""
    image = resolved.profile.image or family.image
    plain, _, digest = image.partition("@")
    if ":" not in plain.rpartition("/")[2]:
        source = resolved.sources["image"] if resolved.profile.image else f"family {family.name}"
        raise ConfigError(f"{source}: `image` {image} has no tag", remedy="write name:tag")
    return plain, digest or (family.digest if plain == family.image else None)


def _override(applied: Applied) -> Override:
    return Override(applied.key, _text(applied.value), applied.source, _text(applied.replaced))


def _text(value: Data) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _rank(number: int, name: NodeName, node: Node, end: Wire, facts: Mapping[str, NodeFacts]) -> Rank:
    hub_cache = None if node.hub_cache is None else _on_node(name, "hub_cache", node.hub_cache, facts)
    return Rank(
        number=number,
        node=name,
        interface=end.interface,
        address=end.address,
        hca=end.hca,
        gid_index=end.gid_index,
        hf_home=_on_node(name, "hf_home", node.hf_home, facts),
        hub_cache=hub_cache,
    )


def _on_node(name: NodeName, key: str, path: str, facts: Mapping[str, NodeFacts]) -> PurePosixPath:
    """A path on a node, with that node's own home for `~`: the controller's is another."""
    if not path.startswith("~"):
        return PurePosixPath(path)
    if name not in facts:
        raise ConfigError(
            f"{name}: {key} is {path}, and only the node knows its home; it was not asked",
            remedy=f"write {name}.{key} out, /home/NAME/… for example, or run this where the node can be reached",
            node=name,
        )
    return path_on_node(path, facts[name].home)


def path_on_node(path: str, home: PurePosixPath) -> PurePosixPath:
    """A path of the inventory on a node whose user's home is `home`."""
    return home / path.removeprefix("~").lstrip("/") if path.startswith("~") else PurePosixPath(path)


def _wiring_sources(name: NodeName, node: Node) -> dict[str, str]:
    keys = ("interface", "address", "hca")
    return {f"{name}.{key}": _DISCOVERED if getattr(node.fabric, key) == "auto" else "inventory" for key in keys}
