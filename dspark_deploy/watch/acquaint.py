"""Get to know two nodes of which nothing is written down yet: their caches, and what comes over each candidate link."""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dspark_deploy.errors import StepFailed
from dspark_deploy.facts.link import Heard, parse_heard
from dspark_deploy.facts.places import CachePlace, parse_places
from dspark_deploy.plan.pairing import NODES, Candidate, Facing
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt, together

PLACES_S = 20  # a dead mount among the usual places
LINK_S = 15  # the program ends itself well before
PORTS = range(49152, 60000)  # above those that servers use; the kernel's own choice begins lower


def read_places(
    hosts: Mapping[str, Host], directories: Sequence[str], also: Mapping[str, Sequence[str]], clock: Clock
) -> dict[str, tuple[CachePlace, ...]]:
    """Where each node has caches. `also` are further places, by node. Raises StepFailed or NodeUnreachable."""

    def read(host: Host) -> tuple[CachePlace, ...]:
        request = {"directories": list(directories), "also": list(also.get(host.name, ()))}
        return parse_places(host.call("places", request, timeout_s=PLACES_S))

    return together({node: partial(read, host) for node, host in hosts.items()}, clock)


def try_links(hosts: Mapping[str, Host], candidates: Sequence[Candidate], clock: Clock) -> dict[str, tuple[Heard, ...]]:
    """What each node hears of its peer over every rail, all at once. A node that could not listen has heard nothing.

    Raises NodeUnreachable.
    """
    rails = [rail for candidate in candidates for rail in candidate.rails]
    token, ports = secrets.token_hex(8), random.sample(PORTS, len(rails))
    heard: dict[str, tuple[Heard, ...]] = {}
    work = {
        node: partial(
            _listen, hosts[node], token, [_end(rail, port, side) for rail, port in zip(rails, ports, strict=True)]
        )
        for side, node in enumerate(NODES)
    }
    for node, outcome in attempt(work, clock).items():
        if isinstance(outcome, StepFailed):
            continue
        if isinstance(outcome, BaseException):
            raise outcome
        heard[node] = outcome
    return heard


def _listen(host: Host, token: str, links: list[dict[str, Any]]) -> tuple[Heard, ...]:
    return parse_heard(host.call("link", {"token": token, "links": links}, timeout_s=LINK_S))


def _end(rail: Facing, port: int, side: int) -> dict[str, Any]:
    own, peer = (rail.head, rail.worker) if side == 0 else (rail.worker, rail.head)
    return {
        "interface": own.interface,
        "address": str(own.address.ip),
        "peer": str(peer.address.ip),
        "port": port,
        "size": rail.size,
    }
