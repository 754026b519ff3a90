"""After a good start: each node keeps what it looked like, so that a later run can say what has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dspark_deploy.errors import DsparkError
from dspark_deploy.facts.node import NodeFacts
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt

KEEP_S = 15


def remember(
    hosts: Mapping[str, Host],
    pair: str,
    facts: Mapping[str, NodeFacts],
    fingerprints: Mapping[str, Mapping[str, str]],
    clock: Clock,
    *,
    at: str,
    warn: Callable[[str], None],
) -> None:
    """Have each node keep its fingerprint, where it is not what it keeps already. What goes wrong is told to `warn`.

    Values of images that were not looked at now stay as they were noted.
    """
    work: dict[str, Callable[[], Any]] = {}
    for node, values in fingerprints.items():
        noted = facts[node].noted
        merged = {**(noted.values if noted else {}), **values}
        if noted is None or merged != noted.values:
            work[node] = partial(_keep, hosts[node], {"pair": pair, "at": at, "values": merged})
    for outcome in attempt(work, clock).values() if work else ():
        if isinstance(outcome, DsparkError):
            warn(f"{outcome.message}: the next run can't say what has changed on that node since")
        elif isinstance(outcome, BaseException):
            raise outcome


def _keep(host: Host, request: Mapping[str, Any]) -> Any:
    return host.call("remember", request, timeout_s=KEEP_S)
