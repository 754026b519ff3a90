"""Everything `up` knows before it changes anything: what is wanted, what runs, and the steps between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from dspark_deploy.checks import memory
from dspark_deploy.checks.case import Case
from dspark_deploy.checks.changes import fingerprints
from dspark_deploy.checks.every import excuse, judge
from dspark_deploy.checks.finding import Finding, failures, refuse
from dspark_deploy.facts.node import Container, NodeFacts
from dspark_deploy.flow.gate import Gate, caches_of, decide
from dspark_deploy.flow.intention import Intention
from dspark_deploy.flow.releases import read_served
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.launch import HEAD_FIRST as NODES
from dspark_deploy.plan.launch import Step, plan_up
from dspark_deploy.plan.served import Served, served_by
from dspark_deploy.plan.situation import Situation
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import beside
from dspark_deploy.render.release import Release
from dspark_deploy.render.render import render
from dspark_deploy.watch.deeper import carried_before, look_deeper
from dspark_deploy.watch.gather import gather


@dataclass(frozen=True, slots=True)
class Previous:
    """The release that serves now and would be brought back."""

    release: str
    served: Served


@dataclass(frozen=True, slots=True)
class Prepared:
    """A start that its checks let pass."""

    deployment: Deployment
    release: Release
    served: Served
    facts: Mapping[str, NodeFacts]
    situation: Situation
    findings: tuple[Finding, ...]
    fingerprints: Mapping[str, Mapping[str, str]]  # by node, for the next run to say what has changed since
    gate: Gate
    steps: tuple[Step, ...]
    ends: str | None  # the release that runs on both ranks and would be stopped
    previous: Previous | None  # the same, where it can be brought back
    skipped: tuple[str, ...] = ()  # what failed and was let pass on request: `id: message`
    utilization: float | None = None  # share of the memory that has to be back after a stop; None: it does not matter

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should look at, though it stops nothing."""
        found = (finding.message for finding in self.findings if finding.status == "warn")
        return (*self.deployment.warnings, *found)

    def running(self) -> dict[str, Container]:
        """The ranks that run, by node."""
        alive = {node: self.situation.alive(node) for node in self.facts}
        return {node: container for node, container in alive.items() if container is not None}

    def broken(self) -> Prepared:
        """The same, knowing that what runs does not serve: it is stopped and started again, and nobody loses it."""
        steps = plan_up(
            self.release.id, _kept(self.facts), self.situation, as_it_runs=False, utilization=self.utilization
        )
        return replace(self, steps=steps, ends=None, previous=None)


def prepare(intention: Intention, hosts: Mapping[str, Host], clock: Clock) -> Prepared:
    """Probe both nodes and their caches, resolve, check, render and plan.

    Changes nothing; raises CheckRefused or ConfigError.
    """
    facts, caches = beside(
        partial(
            gather,
            hosts,
            intention.inventory.name,
            clock,
            images=intention.images,
            paths=intention.paths,
            ports=intention.ports,
        ),
        partial(caches_of, intention, hosts, clock),
        clock,
    )
    case = Case(intention.inventory, facts, intention.catalogue, intention.workload)
    case = look_deeper(case, hosts, clock, link=not carried_before(case))
    deployment = intention.resolve(facts) if case.survey.wires else None
    gate = decide(intention, caches, addresses=_addresses(case))
    judged = judge(case)
    findings = (*excuse(judged, intention.skip), *gate.findings)
    refuse(findings)
    # Without wires there was a failure that can't be let pass: resolving says so.
    deployment = replace(deployment or intention.resolve(facts), offline=gate.offline)
    release = render(deployment)
    situation = case.situation
    as_it_runs = _as_it_runs(release.id, deployment, situation, facts)
    utilization = None if memory.ID in intention.skip else deployment.profile.gpu_memory_utilization
    return Prepared(
        deployment=deployment,
        release=release,
        served=served_by(deployment),
        facts=case.facts,
        situation=situation,
        findings=findings,
        skipped=tuple(f"{each.id}: {each.message}" for each in failures(judged) if each.id in intention.skip),
        fingerprints=fingerprints(case),
        gate=gate,
        steps=plan_up(release.id, _kept(facts), situation, as_it_runs=as_it_runs, utilization=utilization),
        ends=None if as_it_runs else situation.release,
        previous=None if as_it_runs else _previous(hosts, deployment.pair, facts, situation),
        utilization=utilization,
    )


def _addresses(case: Case) -> dict[str, str]:
    return {node: str(wire.address) for node, wire in zip(NODES, case.survey.wires or (), strict=False)}


def _kept(facts: Mapping[str, NodeFacts]) -> dict[str, tuple[str, ...]]:
    return {node: known.releases for node, known in facts.items()}


def _as_it_runs(release: str, deployment: Deployment, situation: Situation, facts: Mapping[str, NodeFacts]) -> bool:
    """Both ranks run this release, on what the tag names now: an image that was pulled since is not running yet."""
    if situation.release != release:
        return False
    for node, known in facts.items():
        container = situation.alive(node)
        named = {image.id for image in known.images if image.reference == deployment.image}
        if container is None or container.image_id not in named or release not in known.releases:
            return False
    return True


def _previous(
    hosts: Mapping[str, Host], pair: str, facts: Mapping[str, NodeFacts], situation: Situation
) -> Previous | None:
    release = situation.release
    if release is None or not all(release in known.releases for known in facts.values()):
        return None
    served = read_served(hosts["head"], pair, release)
    return None if served is None else Previous(release, served)
