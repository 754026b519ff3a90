"""What the checks judge: everything that is known of a pair before a start, as one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dspark_deploy.capacity.measurements import Boot, Measurements
from dspark_deploy.errors import DsparkError
from dspark_deploy.facts.link import Heard
from dspark_deploy.facts.node import Container, Image, NodeFacts
from dspark_deploy.family import Family
from dspark_deploy.inventory import Inventory, Node
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.fabric import Survey, survey
from dspark_deploy.plan.resolve import Workload, path_on_node
from dspark_deploy.plan.situation import Situation, read_situation


@dataclass(frozen=True)
class Case:
    """Facts of the nodes that answered, and what is meant to be served, where that is known."""

    inventory: Inventory
    facts: Mapping[str, NodeFacts]
    catalogue: Catalogue
    workload: Workload | None = None
    unreachable: Mapping[str, DsparkError] = field(default_factory=dict)  # by node: why there are no facts of it
    heard: Mapping[str, tuple[Heard, ...]] = field(default_factory=dict)  # by node, of its peer; empty: not tried
    measured: Measurements | None = None  # what was published; None: no pool is predicted
    boots: tuple[Boot, ...] = ()  # this pair's own on record, the newest first

    @property
    def pair(self) -> str:
        """The inventory's name."""
        return self.inventory.name

    @cached_property
    def survey(self) -> Survey:
        """How the nodes are wired. The fabric is looked for by its RDMA devices unless the family uses none."""
        return survey(self.inventory, self.facts, rdma=self.workload is None or self.workload.family.rdma)

    @cached_property
    def situation(self) -> Situation:
        """What runs."""
        return read_situation(self.pair, self.facts)

    def rank(self, node: str) -> Container | None:
        """The pair's own container that runs there."""
        return self.situation.alive(node)

    def node(self, name: str) -> Node:
        """What the inventory says of a node."""
        return self.inventory.head if name == "head" else self.inventory.worker

    def folders(self, name: str) -> tuple[str, ...]:
        """What a rank on that node mounts, absolute: hf_home, and hub_cache where it lies elsewhere."""
        node = self.node(name)
        given = [node.hf_home] if node.hub_cache is None else [node.hf_home, node.hub_cache]
        return tuple(str(path_on_node(each, self.facts[name].home)) for each in given)

    def usable(self) -> Iterator[tuple[str, NodeFacts]]:
        """The nodes whose Docker can be asked; of the others docker-access has said all."""
        return ((name, known) for name, known in self.facts.items() if known.docker.access == "ok")

    def served(self) -> Iterator[tuple[str, NodeFacts, Image, Workload]]:
        """The nodes that hold the image, with it; nothing without a workload."""
        workload = self.workload
        if workload is None:
            return
        for name, known in self.usable():
            image = next((each for each in known.images if each.reference == workload.image), None)
            if image is not None:
                yield name, known, image, workload

    def family(self) -> Family | None:
        """What the image is meant to be."""
        return None if self.workload is None else self.workload.family
