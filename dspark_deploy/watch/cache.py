"""Look at a model in both nodes' caches, both at once: quickly, or by hashing every file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any

from dspark_deploy.checks.cache import Unread
from dspark_deploy.errors import NodeUnreachable, StepFailed
from dspark_deploy.facts.snapshot import Progress, Snapshot, parse_progress, parse_snapshot
from dspark_deploy.family import Family
from dspark_deploy.inventory import Node
from dspark_deploy.model import Model
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt

QUICK_S = 60.0  # 48 headers off a cold disk take a second; past this the mount is dead
REPORT_S = 120.0  # a hashing node reports twice a second, and its listing comes first

Found = Snapshot | Unread | NodeUnreachable
Requests = Mapping[str, Mapping[str, Any]]
"""What each node's program is asked, by node. See remote/programs/_cache_snapshot.py."""


def cache_request(pair: str, node: Node, model: Model, family: Family) -> dict[str, Any]:
    """Where the container will look on that node, and for what. `~` is expanded there."""
    return {
        "pair": pair,
        "hf_home": node.hf_home,
        "hub_cache": node.hub_cache,
        "mount": family.hf_home_in_container,
        "model": model.id,
        "revision": model.revision,
        "directory": model.directory,
        "encoder": model.ships_encoder,
    }


def read_caches(hosts: Mapping[str, Host], requests: Requests, clock: Clock) -> dict[str, Found]:
    """Each node's snapshot, by headers and sizes."""

    def read(host: Host) -> Snapshot:
        return parse_snapshot(host.name, host.call("verify_cache", requests[host.name], timeout_s=QUICK_S))

    return _found({node: partial(read, host) for node, host in hosts.items()}, clock)


def hash_caches(
    hosts: Mapping[str, Host], requests: Requests, clock: Clock, tell: Callable[[str, Progress], None]
) -> dict[str, Found]:
    """The same with every file hashed. `tell` gets each node's progress, from that node's own thread."""

    def read(host: Host) -> Snapshot:
        with closing(host.start("hash_cache", requests[host.name], timeout_s=REPORT_S)) as session:
            while "progress" in (answer := session.receive(timeout_s=REPORT_S)):
                tell(host.name, parse_progress(answer["progress"]))
            return parse_snapshot(host.name, answer["snapshot"])

    return _found({node: partial(read, host) for node, host in hosts.items()}, clock)


def _found(work: Mapping[str, Callable[[], Snapshot]], clock: Clock) -> dict[str, Found]:
    """A node that can't be asked is an answer too: the other one's still counts."""
    found: dict[str, Found] = {}
    for node, outcome in attempt(work, clock).items():
        if isinstance(outcome, StepFailed):
            found[node] = Unread(": ".join(part for part in (outcome.message, outcome.why) if part), outcome.remedy)
        elif isinstance(outcome, Snapshot | NodeUnreachable):
            found[node] = outcome
        else:
            raise outcome
    return found
