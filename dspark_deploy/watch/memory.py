"""Wait until a node's memory is there again after a rank was stopped: the kernel takes its time over 100 GiB."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dspark_deploy.checks.memory import gib, wanted_bytes
from dspark_deploy.errors import LaunchFailed
from dspark_deploy.facts.node import Memory
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import together

LIMIT_S = 60.0
TURN_S = 1.0
ANSWER_S = 15.0


def await_memory(hosts: Mapping[str, Host], utilization: float, clock: Clock, *, limit_s: float = LIMIT_S) -> str:
    """Return how much is available, in words, once each node has enough. Raises LaunchFailed after `limit_s`."""
    deadline = clock.now() + limit_s
    while True:
        found = together({node: partial(_read, host) for node, host in hosts.items()}, clock)
        lacking = {node: each for node, each in found.items() if each.available < wanted_bytes(utilization, each)}
        if not lacking:
            return ", ".join(f"{node} {gib(each.available)}" for node, each in found.items())
        if clock.now() >= deadline:
            raise _too_little(*next(iter(lacking.items())), utilization, limit_s)
        clock.sleep(TURN_S)


def _read(host: Host) -> Memory:
    document: dict[str, Any] = host.call("memory", {}, timeout_s=ANSWER_S)
    return Memory(**{**document, "consumers": ()})


def _too_little(node: str, memory: Memory, utilization: float, limit_s: float) -> LaunchFailed:
    wanted = gib(wanted_bytes(utilization, memory))
    return LaunchFailed(
        f"{node}: {gib(memory.available)} of memory are free {limit_s:g} s after the stop, and {wanted} are wanted",
        why=f"gpu_memory_utilization {utilization} of {gib(memory.total)} (F29)",
        remedy=f"free memory on {node} (`dspark doctor` names who holds most), or --set gpu_memory_utilization lower",
        node=node,
    )
