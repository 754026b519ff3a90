"""`history` and `rollback`: what the nodes tell of earlier runs, and the way back to a release that they keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dspark_deploy.errors import CheckRefused, ConfigError, NotAsWanted
from dspark_deploy.execute.journal import read_journals
from dspark_deploy.execute.lock import locked
from dspark_deploy.flow.bring import Bring
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.key import key_change
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import open_pair, reach_pair
from dspark_deploy.flow.record import Record, state_home
from dspark_deploy.flow.renew import renewal
from dspark_deploy.flow.report import PairReport
from dspark_deploy.flow.target import Previous, Target
from dspark_deploy.flow.tombstones import heed
from dspark_deploy.flow.untouched import untouched
from dspark_deploy.flow.up import PlanReport, plan_report
from dspark_deploy.flow.wish import Confirm, Limits, Wish
from dspark_deploy.plan.journal import Entry, Journal, before, merged
from dspark_deploy.plan.launch import HEAD_FIRST, plan_up
from dspark_deploy.plan.served import Served
from dspark_deploy.plan.situation import Situation
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.settings import API_KEY
from dspark_deploy.strict import nearest
from dspark_deploy.watch.gather import look


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """What both nodes tell. A node that could not be reached is named; the other's history stands alone then."""

    pair: str
    entries: tuple[Entry, ...]  # oldest first
    releases: Mapping[str, tuple[str, ...]]  # release -> the nodes that keep it whole
    unreachable: Mapping[str, str]


def read_history(wish: Wish, clock: Clock) -> HistoryReport:
    """From the nodes, so that every controller sees the same. Raises NodeUnreachable where neither answers."""
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        if not reached.hosts:
            raise next(iter(reached.unreachable.values()))
        journals = read_journals(reached.hosts, inventory.name, clock)
    kept = {release for journal in journals.values() for release in journal.releases}
    return HistoryReport(
        pair=inventory.name,
        entries=merged(journals.values()),
        releases={each: tuple(node for node in journals if each in journals[node].releases) for each in sorted(kept)},
        unreachable={node: error.message for node, error in reached.unreachable.items()},
    )


def roll_back(
    wish: Wish, release: str | None, limits: Limits, observer: Observer, clock: Clock, confirm: Confirm
) -> PairReport:
    """Serve a release that both nodes still keep: `release`, or the one that served before what serves now.

    Raises ConfigError for a release that neither keeps, CheckRefused for one that a node lacks or whose image is gone.
    """
    inventory = load_inventory_of(wish)
    record = Record(state_home(wish.environment, wish.home), inventory.name, "rollback", observer.warn)
    with (
        open_pair(inventory, wish, clock) as hosts,
        locked(hosts, inventory.name, record.owner, clock, wait_s=limits.lock_s) as guarded,
    ):
        renew = renewal(hosts, guarded)
        bring = Bring(limits, observer, guarded, confirm, hosts, record, returns=limits.returns, renew=renew)
        return bring.to(prepare_rollback(hosts, inventory.name, release, observer, guarded))


@untouched()
def intend_rollback(wish: Wish, release: str | None, clock: Clock) -> PlanReport:
    """The steps that `roll_back` would take, through the same code, and none of them taken."""
    inventory = load_inventory_of(wish)
    with open_pair(inventory, wish, clock) as hosts:
        journals = read_journals(hosts, inventory.name, clock)
        return plan_report(hosts, rollback_target(hosts, inventory.name, release, journals, clock), clock)


@untouched()
def prepare_rollback(
    hosts: Mapping[str, Host], pair: str, release: str | None, observer: Observer, clock: Clock
) -> Target:
    """The steps to a release that both nodes keep. Changes nothing but stops that an earlier run still owes."""
    journals = read_journals(hosts, pair, clock)
    heed(_marks(journals), hosts, pair, observer, clock)
    return rollback_target(hosts, pair, release, journals, clock)


def rollback_target(
    hosts: Mapping[str, Host], pair: str, release: str | None, journals: Mapping[str, Journal], clock: Clock
) -> Target:
    """The steps to a release that both nodes keep. Changes nothing."""
    situation = look(hosts, pair, clock)
    wanted = _wanted(release, journals, situation)
    served = _served(wanted, journals)
    _need_image(hosts, served)
    if served.keyed and hosts["head"].api_key is None:
        raise ConfigError(
            f"release {wanted} asks for an API key, and none is given",
            remedy=f"name its file as api.key_file in the inventory, or set {API_KEY}",
        )
    keys = key_change(hosts, pair, keyed=served.keyed, head=situation.alive("head"))
    as_it_runs = situation.release == wanted and not keys.stale
    kept = {node: tuple(journal.releases) for node, journal in journals.items()}
    return Target(
        release=wanted,
        served=served,
        files=None,
        kept=kept,
        situation=situation,
        # What serves was given about as much: the release's own share is not kept with it.
        steps=plan_up(
            wanted, kept, situation, as_it_runs=as_it_runs, utilization=situation.utilization, keys=keys.steps
        ),
        utilization=situation.utilization,
        ends=None if as_it_runs else situation.release,
        previous=None if as_it_runs else _previous(situation.release, journals),
        marks=_marks(journals),
    )


def _marks(journals: Mapping[str, Journal]) -> frozenset[str]:
    return frozenset(name for journal in journals.values() for name in journal.marks)


def _wanted(release: str | None, journals: Mapping[str, Journal], situation: Situation) -> str:
    if release is None:
        found = before(merged(journals.values()), situation.release)
        if found is None:
            raise NotAsWanted(
                "there is nothing to go back to: no other release has served this pair",
                remedy="`dspark history` shows what the nodes know; `dspark up` serves a profile",
            )
        return found
    known = sorted({each for journal in journals.values() for each in journal.releases})
    matches = [each for each in known if each.startswith(release)]
    if len(matches) == 1:
        return matches[0]
    guess = nearest(release, known)
    hint = f"did you mean {guess}? " if guess else ""
    what = f"begins {len(matches)} releases" if matches else "is not kept on either node: never pushed there, or pruned"
    raise ConfigError(f"release {release} {what}", remedy=f"{hint}kept: {', '.join(known) or 'none'}")


def _served(release: str, journals: Mapping[str, Journal]) -> Served:
    for node in HEAD_FIRST:
        if release not in journals[node].releases:
            raise CheckRefused(
                f"{node}: release {release} is not kept there whole: never pushed there, pruned, or changed",
                remedy="choose one that both keep (`dspark history`), or `dspark up` its profile again",
                node=node,
            )
    previous = _previous(release, journals)
    if previous is None:
        raise CheckRefused(
            f"head: the manifest of release {release} is of another version of dspark",
            remedy="`dspark up` its profile again",
            node="head",
        )
    return previous.served


def _previous(release: str | None, journals: Mapping[str, Journal]) -> Previous | None:
    told = journals["head"].releases.get(release) if release is not None else None
    if release is None or told is None or release not in journals["worker"].releases:
        return None
    try:
        return Previous(release, Served(**told))
    except TypeError:
        return None


def _need_image(hosts: Mapping[str, Host], served: Served) -> None:
    for node in HEAD_FIRST:
        if hosts[node].engine().image_id(served.image) is None:
            raise CheckRefused(
                f"{node}: image {served.image} is not there any more, and nothing is pulled while a pair starts",
                remedy=f"put it back on {node} (`dspark pull`), or choose another release",
                node=node,
            )
