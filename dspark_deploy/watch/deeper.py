"""What takes more than a probe: the content of an image, and what the link between the nodes carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.changes import fingerprints
from dspark_deploy.checks.layout import layout_of, look_at, look_for
from dspark_deploy.checks.link import NODES, used_rails
from dspark_deploy.errors import DsparkError, NodeUnreachable
from dspark_deploy.facts.node import Image, Look, NodeFacts
from dspark_deploy.facts.parse import parse_look
from dspark_deploy.plan.resolve import Workload
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt
from dspark_deploy.watch.link import listeners

LOOK_S = 60  # a container is made, which waits for a disk at most
OF_THE_LINK = ("boot", "interface", "address", "MTU", "HCA")  # of a fingerprint


def look_deeper(case: Case, hosts: Mapping[str, Host], clock: Clock, *, link: bool) -> Case:
    """The case with what is not known yet: what an image of another family is, and, with `link`, the fabric.

    What can't be had is missing there, with its reason. Raises NodeUnreachable where a connection is lost.
    """
    calls: dict[tuple[str, str], partial[Any]] = {}
    for node, request in _looks(case).items():
        calls["look", node] = partial(_look, hosts[node], request)
    rails = used_rails(case) if link else ()
    if rails and set(NODES) <= set(hosts):
        calls |= {("link", node): listen for node, listen in listeners(hosts, rails).items()}
    return _with(case, attempt(calls, clock)) if calls else case


def _looks(case: Case) -> dict[str, dict[str, Any]]:
    """What to ask a node whose image is not of the family that is meant: which one it is of."""
    lacking = {node: image for node, known, image, workload in case.served() if _is_another(known, image, workload)}
    if not lacking:
        return {}
    wanted = look_for(*case.catalogue.families())
    return {node: {"pair": case.pair, "image": image.id, **wanted} for node, image in lacking.items()}


def _is_another(known: NodeFacts, image: Image, workload: Workload) -> bool:
    look = look_at(known, image, workload.family)
    return look is not None and not set(layout_of(workload.family)) <= set(look.present)


def _look(host: Host, request: Mapping[str, Any]) -> Look:
    return parse_look(host.call("look", request, timeout_s=LOOK_S))


def _with(case: Case, outcomes: Mapping[tuple[str, str], Any]) -> Case:
    facts, heard = dict(case.facts), dict(case.heard)
    for (what, node), outcome in outcomes.items():
        match outcome:
            case NodeUnreachable():
                raise outcome
            case DsparkError():
                facts[node] = _lacking(facts[node], what, outcome)
            case BaseException():
                raise outcome
            case Look():
                facts[node] = replace(facts[node], looks=(outcome, *facts[node].looks))
            case _:
                heard[node] = outcome
    return replace(case, facts=facts, heard=heard)


def _lacking(known: NodeFacts, what: str, error: DsparkError) -> NodeFacts:
    reason = f"{error.message} ({error.why})" if error.why else error.message
    return replace(known, missing={**known.missing, what: reason})


def carried_before(case: Case) -> bool:
    """Whether the pair came up well over this very link, both nodes not having booted since: no need to try again."""
    return all(_is_as_noted(case, known) for known in case.facts.values()) and len(case.facts) == len(NODES)


def _is_as_noted(case: Case, known: NodeFacts) -> bool:
    now = fingerprints(case)[known.node]
    return known.noted is not None and all(known.noted.values.get(name) == now.get(name) for name in OF_THE_LINK)
