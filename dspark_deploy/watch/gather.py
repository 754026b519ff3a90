"""Read both nodes before anything is decided: one program, one channel a node, both at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dspark_deploy.facts.node import Container, NodeFacts
from dspark_deploy.facts.parse import parse_probe
from dspark_deploy.plan.situation import Situation, sort_containers
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import together

PROBE_S = 20  # the program ends itself well before


def gather(
    hosts: Mapping[str, Host],
    pair: str,
    clock: Clock,
    *,
    images: Sequence[str] = (),
    paths: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, NodeFacts]:
    """What each node tells now. `images` are references to look up, `paths` (by node) places to look at.

    Raises StepFailed or NodeUnreachable, naming the node.
    """

    def probe(host: Host) -> NodeFacts:
        request = {"pair": pair, "images": list(images), "paths": list((paths or {}).get(host.name, ()))}
        return parse_probe(host.name, host.call("probe", request, timeout_s=PROBE_S))

    return together({node: partial(probe, host) for node, host in hosts.items()}, clock)


def look(hosts: Mapping[str, Host], pair: str, clock: Clock) -> Situation:
    """What runs of the pair now: its engines are asked, nothing else of the nodes is read.

    Raises StepFailed or NodeUnreachable, naming the node.
    """
    work = {node: partial(_containers, host, pair) for node, host in hosts.items()}
    return sort_containers(pair, together(work, clock))


def _containers(host: Host, pair: str) -> tuple[Container, ...]:
    return host.engine().containers(pair)
