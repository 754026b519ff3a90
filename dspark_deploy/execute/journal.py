"""Write into both nodes' journals, and read them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dspark_deploy.errors import DsparkError
from dspark_deploy.plan.journal import UNCONFIRMED, Entry, Journal, Mark, parse_journal
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt, together

JOURNAL_S = 15


def read_journals(hosts: Mapping[str, Host], pair: str, clock: Clock) -> dict[str, Journal]:
    """Each node's. Raises StepFailed or NodeUnreachable."""
    return together({node: partial(_call, host, {"pair": pair}) for node, host in hosts.items()}, clock)


def try_journals(hosts: Mapping[str, Host], pair: str, clock: Clock) -> dict[str, Journal]:
    """The marks and releases of each node that tells them; of the history nothing."""
    request = {"pair": pair, "tail": 0}
    outcomes = attempt({node: partial(_call, host, request) for node, host in hosts.items()}, clock)
    for outcome in outcomes.values():
        if isinstance(outcome, BaseException) and not isinstance(outcome, DsparkError):
            raise outcome
    return {node: outcome for node, outcome in outcomes.items() if isinstance(outcome, Journal)}


def note(
    hosts: Mapping[str, Host],
    pair: str,
    clock: Clock,
    *,
    entry: Entry | None = None,
    marks: Mapping[str, Mark | None] | Mapping[str, Mark] | None = None,
) -> dict[str, DsparkError]:
    """Append `entry` and set `marks` (None takes one away) on every node. Returns the nodes where it failed, and why.

    What is noted helps the next command; a node that can't take it stops nothing.
    """
    request = {
        "pair": pair,
        "append": None if entry is None else entry.document(),
        "set": {name: None if mark is None else mark.document() for name, mark in (marks or {}).items()},
        "tail": 0,
    }
    outcomes = attempt({node: partial(_call, host, request) for node, host in hosts.items()}, clock)
    failed: dict[str, DsparkError] = {}
    for node, outcome in outcomes.items():
        if isinstance(outcome, DsparkError):
            failed[node] = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
    return failed


def tombstones(nodes: Mapping[str, str], at: str, who: str) -> dict[str, Mark]:
    """Marks for nodes (node -> reason) whose stop could not be confirmed."""
    return {f"{UNCONFIRMED}{node}": Mark(at, who, reason=reason) for node, reason in nodes.items()}


def _call(host: Host, request: Mapping[str, Any]) -> Journal:
    return parse_journal(host.call("journal", request, timeout_s=JOURNAL_S))
