"""`doctor`: everything that can be known of a pair before a start, judged, and nothing changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.checks.case import Case
from dspark_deploy.checks.every import judge
from dspark_deploy.checks.finding import Finding, failures
from dspark_deploy.checks.layout import look_for
from dspark_deploy.checks.patches import targets
from dspark_deploy.errors import DsparkError, NodeUnreachable
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.gate import caches_of, decide
from dspark_deploy.flow.intention import Intention, load_meant, paths_of, ports_of
from dspark_deploy.flow.pair import reach_pair
from dspark_deploy.flow.recording import record, replay
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt
from dspark_deploy.remote.recorded import RecordingHost
from dspark_deploy.watch.deeper import look_deeper
from dspark_deploy.watch.gather import probe

NODES = ("head", "worker")


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What the checks say. `unread` is node -> source -> why it could not be read."""

    pair: str
    profile: str | None
    family: str | None
    image: str | None
    findings: tuple[Finding, ...]
    unread: Mapping[str, Mapping[str, str]]
    unreachable: tuple[NodeUnreachable, ...] = ()
    warnings: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()  # files

    @property
    def healthy(self) -> bool:
        """Whether nothing stands in the way of a start."""
        return not failures(self.findings)


def examine(wish: Wish, clock: Clock, *, directory: Path | None = None) -> DoctorReport:
    """Look at both nodes, or at the one that answers. With `directory` all that was told is kept there, redacted.

    Raises ConfigError.
    """
    inventory, intention = load_meant(wish)
    with reach_pair(inventory, wish, clock) as reached:
        return examine_open(wish, inventory, intention, reached.hosts, reached.unreachable, clock, directory=directory)


def examine_recorded(wish: Wish, directory: Path, clock: Clock) -> DoctorReport:
    """The same over a recording; no node is asked. Raises ConfigError where it can't be read."""
    there, hosts, unreachable = replay(directory, wish)
    inventory, intention = load_meant(there)
    return examine_open(there, inventory, intention, hosts, unreachable, clock)


def examine_open(
    wish: Wish,
    inventory: Inventory,
    intention: Intention | None,
    hosts: Mapping[str, Host],
    unreachable: Mapping[str, NodeUnreachable],
    clock: Clock,
    *,
    directory: Path | None = None,
) -> DoctorReport:
    """The checkup of nodes that are open."""
    recording = {node: RecordingHost(host) for node, host in hosts.items()} if directory is not None else {}
    case, cache = _look(wish, inventory, intention, recording or hosts, unreachable, clock)
    findings = (*judge(case), *cache)
    recorded: tuple[str, ...] = ()
    if directory is not None:
        recorded = record(directory, inventory, case.workload, recording, case.unreachable)
    workload = case.workload
    return DoctorReport(
        pair=inventory.name,
        profile=workload.profile.name if workload else None,
        family=workload.family.name if workload else None,
        image=workload.image if workload else None,
        findings=findings,
        unread={node: dict(known.missing) for node, known in case.facts.items() if known.missing},
        unreachable=tuple(unreachable.values()),
        warnings=_warnings(case, intention),
        recorded=recorded,
    )


def _look(
    wish: Wish,
    inventory: Inventory,
    intention: Intention | None,
    hosts: Mapping[str, Host],
    unreachable: Mapping[str, NodeUnreachable],
    clock: Clock,
) -> tuple[Case, tuple[Finding, ...]]:
    """The case, and what is said of the model's cache. A node that can't tell is no reason to ask the other nothing."""
    paths = paths_of(inventory)
    images = intention.images if intention else ()
    wanted = None
    if intention is not None:
        also = targets(intention.inventory, intention.workload)
        wanted = look_for(intention.workload.family, also=also)
    asked = partial(probe, pair=inventory.name, images=images, ports=ports_of(inventory), look_for=wanted)
    work: dict[str, Any] = {node: partial(asked, host, paths=paths[node]) for node, host in hosts.items()}
    if intention is not None and hosts:
        work["cache"] = partial(caches_of, intention, hosts, clock)
    outcomes = attempt(work, clock)
    caches = outcomes.pop("cache", None)
    facts, silent = _told(outcomes, unreachable)
    catalogue = intention.catalogue if intention else catalogue_of(wish)
    case = Case(
        inventory,
        facts,
        catalogue,
        intention.workload if intention else None,
        unreachable=silent,
        measured=load_measurements(),
        boots=intention.boots if intention else (),
    )
    case = look_deeper(case, hosts, clock, link=True)
    return case, () if intention is None or caches is None else _cache(intention, case, caches)


def _told(
    outcomes: Mapping[str, Any], unreachable: Mapping[str, NodeUnreachable]
) -> tuple[dict[str, NodeFacts], dict[str, DsparkError]]:
    """The facts of the nodes that told theirs, and why the others did not."""
    facts: dict[str, NodeFacts] = {}
    silent: dict[str, DsparkError] = dict(unreachable)
    for node, outcome in outcomes.items():
        if isinstance(outcome, DsparkError):
            silent[node] = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            facts[node] = outcome
    return facts, silent


def _cache(intention: Intention, case: Case, caches: Any) -> tuple[Finding, ...]:
    if isinstance(caches, NodeUnreachable):  # told of the node already
        return ()
    if isinstance(caches, BaseException):
        raise caches
    addresses = {node: str(wire.address) for node, wire in zip(NODES, case.survey.wires or (), strict=False)}
    return tuple(replace(each, group="cache") for each in decide(intention, caches, addresses).findings)


def _warnings(case: Case, intention: Intention | None) -> tuple[str, ...]:
    """What is doubtful about the profile itself, as far as it can be resolved on these nodes."""
    if intention is None:
        return ()
    if case.survey.wires is None:
        return intention.warnings
    every = tuple(problem.check for problem in case.survey.problems)
    deployment = replace(intention, skip=every).resolve(case.facts)
    return (*intention.warnings, *deployment.warnings)
