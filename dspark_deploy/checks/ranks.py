"""What runs now: the pair's own containers as they were meant, and nothing foreign under its name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, fine
from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.family import Family

UNLIMITED = -1
CLOCKS = timedelta(seconds=60)  # two clocks may differ by less without anybody's having looked
RDMA = "/dev/infiniband"


def _foreign(case: Case) -> Iterator[Verdict]:
    """A compose project of the pair's name that is not the pair's: compose would replace its containers."""
    for node, containers in case.situation.foreign.items():
        if containers:
            message = f"{node}: compose project {case.pair!r} holds {containers[0].name}, which is not of this pair"
            yield bad(message, "give this pair another `name` in the inventory, or remove that container", node)
        else:
            yield fine(f"{node}: the name {case.pair!r} is free", node)


def _granted(case: Case) -> Iterator[Verdict]:
    """An engine or a compose that drops a mount, a device or a limit in silence costs speed, not the start."""
    family = case.family()
    for node in case.facts:
        rank = case.rank(node)
        if rank is None or rank.granted is None or family is None or rank.labels.get(labels.FAMILY) != family.name:
            continue
        lacking = list(_lacking(rank, family))
        if lacking:
            message = f"{node}: the running rank was not given {', '.join(lacking)}"
            yield bad(message, "dspark down, then dspark up; where it comes again, update docker compose there", node)
        else:
            yield fine(f"{node}: the running rank was given all that it needs", node)


def _lacking(rank: Container, family: Family) -> Iterator[str]:
    granted = rank.granted
    if granted is None:
        return
    if family.hf_home_in_container not in granted.mounts:
        yield f"its mount {family.hf_home_in_container}"
    if granted.memlock_bytes != UNLIMITED:
        yield "an unlimited memlock"
    if family.rdma and not any(device.startswith(RDMA) for device in granted.devices):
        yield RDMA
    if family.gpu and not granted.gpu:
        yield "the GPU"


def _together(case: Case) -> Iterator[Verdict]:
    """Docker revives one rank alone; the other then holds a stale one, and the pair never meets again."""
    head, worker = case.rank("head"), case.rank("worker")
    if len(case.facts) < 2 or (head is None and worker is None):  # noqa: PLR2004  a pair
        return
    remedy = "dspark up restarts both, dspark down ends both"
    if head is None or worker is None:
        runs, lacks = ("worker", "head") if head is None else ("head", "worker")
        yield bad(f"the {runs}'s rank runs without the {lacks}'s", remedy, lacks)
    elif _is_stale(case, head, worker):
        yield bad(
            "the worker's rank was started after the head's: it is not the one that the head met", remedy, "worker"
        )
    elif head.restarts != worker.restarts:
        yield bad(f"the head's rank was restarted {head.restarts} times, the worker's {worker.restarts}", remedy)
    else:
        yield fine("both ranks run since one start")


def _is_stale(case: Case, head: Container, worker: Container) -> bool:
    """Whether the worker's start lies after the head's, both told by one clock."""
    if not (head.started_at and worker.started_at):
        return False
    began = {node: _began(each.started_at) for node, each in (("head", head), ("worker", worker)) if each.started_at}
    right = {node: began[node] - timedelta(seconds=case.facts[node].skew_s or 0.0) for node in began}
    return right["worker"] - right["head"] > CLOCKS


def _began(stamp: str) -> datetime:
    """RFC 3339 with nanoseconds, as the engine has it."""
    return datetime.fromisoformat(stamp)


CHECKS = (
    Check("foreign-containers", "ranks", "fail", (), _foreign),
    Check("rank-granted", "ranks", "warn", ("F08", "F50"), _granted),
    Check("ranks-together", "ranks", "warn", ("F61",), _together),
)
