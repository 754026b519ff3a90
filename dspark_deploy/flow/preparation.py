"""Everything `up` knows before it changes anything: what is wanted, what runs, and the steps between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.checks import memory
from dspark_deploy.checks.cache import Unread
from dspark_deploy.checks.case import Case
from dspark_deploy.checks.changes import fingerprints
from dspark_deploy.checks.every import excuse, judge
from dspark_deploy.checks.finding import Finding, failures, refuse
from dspark_deploy.checks.layout import look_for
from dspark_deploy.checks.patches import targets
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.facts.snapshot import Snapshot
from dspark_deploy.flow.gate import caches_of, decide
from dspark_deploy.flow.intention import Intention
from dspark_deploy.flow.key import KeyChange, key_change
from dspark_deploy.flow.releases import read_served
from dspark_deploy.flow.target import Previous, Target
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.launch import HEAD_FIRST as NODES
from dspark_deploy.plan.launch import plan_up
from dspark_deploy.plan.served import served_by
from dspark_deploy.plan.situation import Situation
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import beside
from dspark_deploy.render.render import render
from dspark_deploy.watch.deeper import carried_before, look_deeper
from dspark_deploy.watch.gather import gather


@dataclass(frozen=True, slots=True)
class Prepared:
    """A start that its checks let pass."""

    deployment: Deployment
    facts: Mapping[str, NodeFacts]
    findings: tuple[Finding, ...]
    fingerprints: Mapping[str, Mapping[str, str]]  # by node, for the next run to say what has changed since
    target: Target

    @property
    def told(self) -> dict[str, object]:
        """What the checks said that was no plain yes, for the record."""
        told = [{"id": each.id, "status": each.status, "message": each.message} for each in self.findings]
        return {"findings": [each for each in told if each["status"] != "ok"], "skipped": list(self.target.skipped)}


def prepare(intention: Intention, hosts: Mapping[str, Host], clock: Clock) -> Prepared:
    """Probe both nodes and their caches, resolve, check, render and plan.

    Changes nothing; raises CheckRefused or ConfigError.
    """
    facts, caches = _read(intention, hosts, clock)
    case = _case(intention, facts, hosts, clock)
    deployment = intention.resolve(facts) if case.survey.wires else None
    gate = decide(intention, caches, addresses=_addresses(case))
    judged = judge(case)
    findings = (*excuse(judged, intention.skip), *gate.findings)
    refuse(findings)
    # Without wires there was a failure that can't be let pass: resolving says so.
    deployment = replace(deployment or intention.resolve(facts), offline=gate.offline)
    utilization = None if memory.ID in intention.skip else deployment.profile.gpu_memory_utilization
    target = _target(case, deployment, hosts, utilization)
    doubts = (finding.message for finding in findings if finding.status == "warn")
    target = replace(
        target,
        question=gate.question,
        warnings=(*intention.warnings, *deployment.warnings, *doubts, *target.warnings),
        skipped=tuple(f"{each.id}: {each.message}" for each in failures(judged) if each.id in intention.skip),
    )
    return Prepared(deployment, case.facts, findings, fingerprints(case), target)


def _read(
    intention: Intention, hosts: Mapping[str, Host], clock: Clock
) -> tuple[dict[str, NodeFacts], Mapping[str, Snapshot | Unread]]:
    """Both nodes and both caches, at once."""
    read_nodes = partial(
        gather,
        hosts,
        intention.inventory.name,
        clock,
        images=intention.images,
        paths=intention.paths,
        ports=intention.ports,
        look_for=look_for(intention.workload.family, also=targets(intention.inventory, intention.workload)),
    )
    return beside(read_nodes, partial(caches_of, intention, hosts, clock), clock)


def _case(intention: Intention, facts: Mapping[str, NodeFacts], hosts: Mapping[str, Host], clock: Clock) -> Case:
    """What the checks judge. The link is tried unless the pair came up well over it already."""
    case = Case(
        intention.inventory,
        facts,
        intention.catalogue,
        intention.workload,
        measured=load_measurements(),
        boots=intention.boots,
    )
    return look_deeper(case, hosts, clock, link=not carried_before(case))


def _target(case: Case, deployment: Deployment, hosts: Mapping[str, Host], utilization: float | None) -> Target:
    """The release, and the steps to it from what runs."""
    facts, situation, release = case.facts, case.situation, render(deployment)
    keys = key_change(
        hosts,
        deployment.pair,
        keyed=deployment.keyed,
        head=situation.alive("head"),
        kept_at={node: known.key_at for node, known in facts.items()},
    )
    kept = {node: known.releases for node, known in facts.items()}
    as_it_runs = not keys.stale and _as_it_runs(release.id, deployment, situation, facts)
    return Target(
        release=release.id,
        served=served_by(deployment),
        files=release,
        kept=kept,
        situation=situation,
        steps=plan_up(release.id, kept, situation, as_it_runs=as_it_runs, utilization=utilization, keys=keys.steps),
        ends=None if as_it_runs else situation.release,
        previous=None if as_it_runs else previous_of(hosts, deployment.pair, facts, situation),
        warnings=_of_the_key(keys, release.id, situation),
        marks=frozenset(name for known in facts.values() for name in known.marks),
        utilization=utilization,
    )


def _addresses(case: Case) -> dict[str, str]:
    return {node: str(wire.address) for node, wire in zip(NODES, case.survey.wires or (), strict=False)}


def _of_the_key(keys: KeyChange, release: str, situation: Situation) -> tuple[str, ...]:
    """No file tells of it: a restart has to say why."""
    if not (keys.stale and situation.release == release):
        return ()
    return ("the API key is not the one that the head was started with: both ranks are started again",)


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


def previous_of(
    hosts: Mapping[str, Host], pair: str, facts: Mapping[str, NodeFacts], situation: Situation
) -> Previous | None:
    """The release that both ranks run, where both nodes keep it whole and its manifest can be read."""
    release = situation.release
    if release is None or not all(release in known.releases for known in facts.values()):
        return None
    served = read_served(hosts["head"], pair, release)
    return None if served is None else Previous(release, served)
