"""Read both nodes before anything is decided: one program, one channel a node, both at once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dspark_deploy.errors import DsparkError
from dspark_deploy.facts.node import Container, NodeFacts
from dspark_deploy.facts.parse import parse_probe
from dspark_deploy.plan.situation import Situation, sort_containers
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt, together

PROBE_S = 20  # the program ends itself well before


def gather(
    hosts: Mapping[str, Host],
    pair: str,
    clock: Clock,
    *,
    images: Sequence[str] = (),
    paths: Mapping[str, Sequence[str]] | None = None,
    ports: Sequence[int] = (),
    look_for: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, NodeFacts]:
    """What each node tells now. `images` are references to look up, `paths` (by node) places to look at, `ports` those
    whose listeners get a name, `look_for` what to look for in the images (see checks/layout.py).

    Raises StepFailed or NodeUnreachable, naming the node.
    """
    work = {
        node: partial(
            probe, host, pair, images=images, paths=(paths or {}).get(node, ()), ports=ports, look_for=look_for
        )
        for node, host in hosts.items()
    }
    return together(work, clock)


def probe(
    host: Host,
    pair: str,
    *,
    images: Sequence[str],
    paths: Sequence[str],
    ports: Sequence[int],
    look_for: Mapping[str, Sequence[str]] | None = None,
) -> NodeFacts:
    """What one node tells now. Raises StepFailed or NodeUnreachable."""
    request: dict[str, Any] = {"pair": pair, "images": list(images), "paths": list(paths), "ports": list(ports)}
    if look_for is not None:
        request["look"] = {name: list(each) for name, each in look_for.items()}
    asked = time.time()
    document = host.call("probe", request, timeout_s=PROBE_S)
    # The node looked at its clock at the beginning, once its python had started: the question's way and that are left.
    return parse_probe(host.name, document, skew_s=document["time_s"] - asked)


def look(hosts: Mapping[str, Host], pair: str, clock: Clock) -> Situation:
    """What runs of the pair now: its engines are asked, nothing else of the nodes is read.

    Raises StepFailed or NodeUnreachable, naming the node.
    """
    work = {node: partial(_containers, host, pair) for node, host in hosts.items()}
    return sort_containers(pair, together(work, clock))


def look_at_each(hosts: Mapping[str, Host], pair: str, clock: Clock) -> dict[str, tuple[Container, ...] | DsparkError]:
    """Each node's containers of the pair, or why it can't tell them: one hides nothing of the other."""
    outcomes = attempt({node: partial(_containers, host, pair) for node, host in hosts.items()}, clock)
    found: dict[str, tuple[Container, ...] | DsparkError] = {}
    for node, outcome in outcomes.items():
        if isinstance(outcome, BaseException) and not isinstance(outcome, DsparkError):
            raise outcome
        found[node] = outcome
    return found


def _containers(host: Host, pair: str) -> tuple[Container, ...]:
    return host.engine().containers(pair)
