"""`parity`: do the two ranks that run agree. The real engine serves in silence with ranks that differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dspark_deploy.checks.parity import Both, Compared, compare
from dspark_deploy.errors import NodeUnreachable, NotAsWanted, StepFailed
from dspark_deploy.execute.journal import note
from dspark_deploy.facts.parity import RankSeen
from dspark_deploy.family import Family
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.record import this_user
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.environment import rank_names
from dspark_deploy.plan.journal import AGREED, DIFFERED, Mark, ranks_word
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.render.compose import rank_mounts
from dspark_deploy.watch.parity import read_ranks


@dataclass(frozen=True, slots=True)
class ParityReport:
    """The verdict, and all that was compared. `at` is the controller's clock, RFC 3339."""

    pair: str
    agree: bool
    at: str
    release: str | None  # the head's
    family: str | None
    findings: tuple[Compared, ...]
    warnings: tuple[str, ...] = ()


def compare_ranks(wish: Wish, clock: Clock) -> ParityReport:
    """Ask both nodes, compare, and note on both what the verdict was; nothing else is changed.

    Raises NotAsWanted where one rank or none runs, NodeUnreachable where a node can't be asked.
    """
    inventory = load_inventory_of(wish)
    pair = inventory.name
    families = {family.name: family for family in catalogue_of(wish).families()}
    with open_pair(inventory, wish, clock) as hosts:
        head, worker = _both(pair, hosts, families, clock)
        report = _judge(pair, head, worker, families)
        ranks = ranks_word(*((rank.container, rank.started_at) for rank in (head, worker)))
        mark = Mark(report.at, this_user(), report.release, ranks)
        marks = {AGREED: mark, DIFFERED: None} if report.agree else {DIFFERED: mark}
        failed = note(hosts, pair, clock, marks=marks)
    unkept = tuple(f"`status` will not tell of it: {error.message}" for error in failed.values())
    return replace(report, warnings=unkept)


def _both(
    pair: str, hosts: Mapping[str, Host], families: Mapping[str, Family], clock: Clock
) -> tuple[RankSeen, RankSeen]:
    try:
        ranks = read_ranks(hosts, pair, families.values(), clock)
    except StepFailed as error:  # as `status` has it: what can't be asked is not known
        raise NodeUnreachable(error.message, why=error.why, remedy=error.remedy, node=error.node) from error
    head, worker = ranks["head"], ranks["worker"]
    if head is None or worker is None:
        running = [node for node, rank in ranks.items() if rank is not None]
        what = f"only the {running[0]}'s rank of {pair} runs" if running else f"no rank of {pair} runs"
        remedy = "`dspark status` says more, `dspark up` starts both"
        raise NotAsWanted(f"{what}: there is nothing to compare", remedy=remedy)
    return head, worker


def _judge(pair: str, head: RankSeen, worker: RankSeen, families: Mapping[str, Family]) -> ParityReport:
    known = [family for family in (families.get(rank.family or "") for rank in (head, worker)) if family]
    own_variables = frozenset[str]().union(*map(rank_names, known))
    own_mounts = frozenset[str]().union(*map(rank_mounts, known))
    findings = compare(Both(head, worker, own_variables, own_mounts))
    return ParityReport(
        pair=pair,
        agree=all(each.status != "fail" for each in findings),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        release=head.release,
        family=head.family,
        findings=findings,
    )
