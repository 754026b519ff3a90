"""Get to know two nodes of which nothing is written down yet: their caches, and what comes over each candidate link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dspark_deploy.errors import StepFailed
from dspark_deploy.facts.link import Heard
from dspark_deploy.facts.places import CachePlace, parse_places
from dspark_deploy.plan.pairing import Candidate
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt, together
from dspark_deploy.watch.link import listeners

PLACES_S = 20  # a dead mount among the usual places


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
    heard: dict[str, tuple[Heard, ...]] = {}
    for node, outcome in attempt(listeners(hosts, rails), clock).items():
        if isinstance(outcome, StepFailed):
            continue
        if isinstance(outcome, BaseException):
            raise outcome
        heard[node] = outcome
    return heard
