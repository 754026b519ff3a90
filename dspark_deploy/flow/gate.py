"""The gate before a start: offline with complete and equal caches, else not at all, or online after a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dspark_deploy.checks.cache import Judged, Unread, check_cache
from dspark_deploy.checks.cache_words import Where, size_text
from dspark_deploy.checks.finding import Finding
from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.facts.snapshot import Snapshot
from dspark_deploy.flow.intention import Intention, nodes_of
from dspark_deploy.inventory import Node
from dspark_deploy.model import Model
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.watch.cache import Requests, cache_request, read_caches

_BESIDE_A_DOWNLOAD = ("wrong-size", "corrupt", "unreadable", "link-leaves-mount")


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether the pair starts offline, what speaks against that, and what has to be agreed to for a start online."""

    offline: bool
    findings: tuple[Finding, ...]
    question: str | None = None


def caches_of(intention: Intention, hosts: Mapping[str, Host], clock: Clock) -> dict[str, Snapshot | Unread]:
    """Both nodes' snapshots of the model that is meant, by a quick look. Raises NodeUnreachable."""
    found: dict[str, Snapshot | Unread] = {}
    for node, outcome in read_caches(hosts, requests_of(intention), clock).items():
        if isinstance(outcome, NodeUnreachable):
            raise outcome
        found[node] = outcome
    return found


def requests_of(intention: Intention) -> Requests:
    """What each node's program is asked."""
    workload, inventory = intention.workload, intention.inventory
    return {
        name: cache_request(inventory.name, node, workload.model, workload.family)
        for name, node in nodes_of(inventory).items()
    }


def places_of(intention: Intention, addresses: Mapping[str, str]) -> dict[str, Where]:
    """Which key of the inventory says where each node's cache is, and the node's fabric address where it is known."""
    nodes = nodes_of(intention.inventory)
    return {name: Where(_setting(name, node), addresses.get(name)) for name, node in nodes.items()}


def decide(intention: Intention, caches: Mapping[str, Snapshot | Unread], addresses: Mapping[str, str]) -> Gate:
    """Complete and equal caches are offline, also where --online was given: there is nothing to fetch."""
    judged = check_cache(intention.workload.model, caches, places_of(intention, addresses))
    if judged.complete or not intention.online:
        return Gate(offline=True, findings=judged.findings)
    softened = tuple(replace(each, status="warn") if each.status == "fail" else each for each in judged.findings)
    return Gate(offline=False, findings=softened, question=_question(intention.workload.model, judged, caches))


def _question(model: Model, judged: Judged, caches: Mapping[str, Snapshot | Unread]) -> str:
    lines = ["--online: the caches are not complete, and each node downloads what it lacks while it starts:"]
    lines += [f"  {node}: {judged.verdicts[node]}; {_room(each, caches)}" for node, each in caches.items()]
    lines += [f"  {finding.message}" for finding in judged.findings if finding.status == "fail"]
    if any(verdict in _BESIDE_A_DOWNLOAD for verdict in judged.verdicts.values()):
        lines.append("  a download does not mend that: the hub client takes files that are there for whole")
    if model.directory is not None:
        lines.append("  a plain directory is never downloaded")
    elif model.revision is None:
        lines.append("  without a revision each node fetches what the default branch has at that moment")
    return "\n".join(lines)


def _room(snapshot: Snapshot | Unread, caches: Mapping[str, Snapshot | Unread]) -> str:
    """Free disk, and what is still to come as far as the index or the other node tells."""
    if isinstance(snapshot, Unread):
        return "free disk not known"
    whole = max([each.bytes for each in caches.values() if isinstance(each, Snapshot)] + [snapshot.total_bytes or 0])
    lacking = f"about {size_text(whole - snapshot.bytes)} of {size_text(whole)}" if whole else "nobody knows how much"
    return f"{size_text(snapshot.free_bytes)} free in {snapshot.hub}, {lacking} to fetch"


def _setting(name: str, node: Node) -> str:
    if node.hub_cache is not None:
        return f"{name}.hub_cache"
    return f"{name}.hf_home" if "hf_home" in node.model_fields_set else f"{name}.hf_home by default"
