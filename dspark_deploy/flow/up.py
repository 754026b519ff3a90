"""`up`: bring the pair to serving one release, or leave it as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from dspark_deploy.execute.journal import read_journals
from dspark_deploy.execute.lock import locked
from dspark_deploy.flow.bring import Bring
from dspark_deploy.flow.intention import Intention, load_intention
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.preparation import Prepared, prepare
from dspark_deploy.flow.record import Record, state_home
from dspark_deploy.flow.releases import read_files
from dspark_deploy.flow.remember import remember
from dspark_deploy.flow.renew import Renew, never, renewal
from dspark_deploy.flow.report import PairReport
from dspark_deploy.flow.target import Target
from dspark_deploy.flow.tombstones import heed
from dspark_deploy.flow.untouched import untouched
from dspark_deploy.flow.wish import Confirm, Limits, Wish
from dspark_deploy.plan.diff import diff_files
from dspark_deploy.plan.journal import merged
from dspark_deploy.plan.launch import changes
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import together


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What `up` would do, and what it rests on."""

    pair: str
    profile: str
    family: str
    release: str
    steps: tuple[str, ...]
    changes: bool
    overrides: tuple[str, ...]
    warnings: tuple[str, ...]
    ends: str | None  # the release that serves now and would be stopped
    downtime: str  # how long nothing would answer then, from earlier runs; empty where nothing ends
    diffs: Mapping[str, str]  # by node: its files against those of the release that serves


def intend_up(wish: Wish, clock: Clock) -> PlanReport:
    """The steps that `bring_up` would take, through the same code, and none of them taken."""
    intention = load_intention(wish)
    with open_pair(intention.inventory, wish, clock) as hosts:
        prepared = prepare(intention, hosts, clock)
        overrides = tuple(
            f"{each.key} = {each.value} from {each.source} (instead of {each.replaced})"
            for each in prepared.deployment.overrides
        )
        return plan_report(hosts, prepared.target, clock, overrides=overrides)


def plan_report(
    hosts: Mapping[str, Host], target: Target, clock: Clock, *, overrides: tuple[str, ...] = ()
) -> PlanReport:
    """What bringing the pair to `target` would do. The nodes are asked, and nothing is changed."""
    return PlanReport(
        pair=target.served.pair,
        profile=target.served.profile,
        family=target.served.family,
        release=target.release,
        steps=tuple(map(str, target.steps)),
        changes=changes(target.steps),
        overrides=overrides,
        warnings=target.warnings,
        ends=target.ends,
        downtime=_downtime(hosts, target, clock) if target.ends else "",
        diffs=_diffs(hosts, target, clock) if changes(target.steps) else {},
    )


def _diffs(hosts: Mapping[str, Host], target: Target, clock: Clock) -> dict[str, str]:
    """What changes in each node's files. Where a node keeps the serving release no more, all of them are named."""
    serving = _files_of(hosts, target, target.ends, clock)
    planned = _planned(hosts, target, clock)
    return {node: diff_files(serving[node] if target.ends else None, files) for node, files in planned.items()}


def _planned(hosts: Mapping[str, Host], target: Target, clock: Clock) -> dict[str, dict[str, str]]:
    """Node -> its files as they would be: those that are to be pushed, or those that it keeps."""
    if target.files is None:
        return {node: files or {} for node, files in _files_of(hosts, target, target.release, clock).items()}
    return {node: {name: file.content for name, file in target.files.of(node).items()} for node in hosts}


def _files_of(
    hosts: Mapping[str, Host], target: Target, release: str | None, clock: Clock
) -> dict[str, dict[str, str] | None]:
    """Node -> its files of a release; None where it does not keep it whole."""
    pair = target.served.pair
    return together({node: partial(read_files, host, pair, release or "") for node, host in hosts.items()}, clock)


def _downtime(hosts: Mapping[str, Host], target: Target, clock: Clock) -> str:
    """The last start of the same profile is the best guess at the next one."""
    history = merged(read_journals(hosts, target.served.pair, clock).values())
    # A boot that was left and noted by whoever came later has no seconds of its steps.
    known = (each for each in history if each.outcome == "serving" and each.seconds)
    same = [each for each in known if each.profile == target.served.profile]
    if not same:
        return "how long nothing answers then is not known: no run of this profile is on record"
    return f"nothing answers for about {sum(same[-1].seconds.values()):.0f} s, as in the run of {same[-1].at}"


def bring_up(
    wish: Wish, limits: Limits, observer: Observer, clock: Clock, confirm: Confirm, *, command: str = "up"
) -> PairReport:
    """Serve the wished profile on both nodes, and prove that it is served.

    Raises CheckRefused before anything changed, LaunchFailed once everything this run started is stopped again,
    NotAsWanted where that could not be confirmed, Interrupted saying what was left.
    """
    intention = load_intention(wish)
    record = Record(state_home(wish.environment, wish.home), intention.inventory.name, command, observer.warn)
    with (
        open_pair(intention.inventory, wish, clock) as hosts,
        locked(hosts, intention.inventory.name, record.owner, clock, wait_s=limits.lock_s) as guarded,
    ):
        renew = renewal(hosts, guarded)
        return BringUp(intention, limits, observer, guarded, confirm, hosts, record, renew).up()


@dataclass(frozen=True, slots=True)
class BringUp:
    """One `up` on open nodes, under their lock."""

    intention: Intention
    limits: Limits
    observer: Observer
    clock: Clock
    confirm: Confirm
    hosts: Mapping[str, Host]
    record: Record
    renew: Renew = never

    def up(self) -> PairReport:
        """See bring_up."""
        began = self.clock.now()
        with untouched():
            prepared = prepare(self.intention, self.hosts, self.clock)
            if heed(prepared.target.marks, self.hosts, self.record.pair, self.observer, self.clock):
                prepared = prepare(self.intention, self.hosts, self.clock)
        bring = Bring(
            self.limits,
            self.observer,
            self.clock,
            self.confirm,
            self.hosts,
            self.record,
            remember=partial(self._remember, prepared),
            told=prepared.told,
            basis={"facts": prepared.facts},
            returns=self.limits.returns,
            renew=self.renew,
        )
        return bring.to(prepared.target, {"check": self.clock.now() - began})

    def _remember(self, prepared: Prepared) -> None:
        pair, facts, found = prepared.target.served.pair, prepared.facts, prepared.fingerprints
        clock = self.clock.shielded()
        remember(self.hosts, pair, facts, found, clock, at=self.record.began, warn=self.observer.warn)
