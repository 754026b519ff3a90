"""`up`: bring the pair to serving one release, or leave it as it was."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from dspark_deploy.errors import DsparkError, Interrupted, LaunchFailed
from dspark_deploy.execute.lock import locked
from dspark_deploy.flow.intention import Intention, load_intention
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.preparation import Prepared, prepare
from dspark_deploy.flow.record import Record, state_home
from dspark_deploy.flow.remember import remember
from dspark_deploy.flow.report import PairReport, rank_reports
from dspark_deploy.flow.stage import Stage
from dspark_deploy.flow.undo import undo
from dspark_deploy.flow.wish import Confirm, Limits, Wish
from dspark_deploy.plan.launch import Step, changes
from dspark_deploy.plan.situation import State
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import beside
from dspark_deploy.remote.reach import answers
from dspark_deploy.watch.gather import look


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


def intend_up(wish: Wish, clock: Clock) -> PlanReport:
    """The steps that `bring_up` would take, through the same code, and none of them taken."""
    intention = load_intention(wish)
    with open_pair(intention.inventory, wish, clock) as hosts:
        prepared = prepare(intention, hosts, clock)
        return PlanReport(
            pair=prepared.served.pair,
            profile=prepared.served.profile,
            family=prepared.served.family,
            release=prepared.release.id,
            steps=tuple(map(str, prepared.steps)),
            changes=changes(prepared.steps),
            overrides=tuple(
                f"{each.key} = {each.value} from {each.source} (instead of {each.replaced})"
                for each in prepared.deployment.overrides
            ),
            warnings=prepared.warnings,
        )


def bring_up(wish: Wish, limits: Limits, observer: Observer, clock: Clock, confirm: Confirm) -> PairReport:
    """Serve the wished profile on both nodes, and prove that it is served.

    Raises CheckRefused before anything changed, LaunchFailed once everything this run started is stopped again,
    NotAsWanted where that could not be confirmed, Interrupted saying what was left.
    """
    intention = load_intention(wish)
    record = Record(state_home(wish.environment, wish.home), intention.inventory.name, "up", observer.warn)
    owner = {"who": f"{getpass.getuser()}@{socket.gethostname()}", "pid": os.getpid(), "since": record.began}
    with (
        open_pair(intention.inventory, wish, clock) as hosts,
        locked(hosts, intention.inventory.name, {**owner, "command": "dspark up"}),
    ):
        return BringUp(intention, limits, observer, clock, confirm, hosts, record).up()


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

    def up(self) -> PairReport:
        """See bring_up."""
        began = self.clock.now()
        prepared = prepare(self.intention, self.hosts, self.clock)
        checked_s = self.clock.now() - began
        for warning in prepared.warnings:
            self.observer.warn(warning)
        stage = self._bring(prepared)
        report = self._report(prepared, stage, {"check": checked_s, **stage.seconds})
        ended = {"outcome": "serving", "release": report.release, "seconds": dict(report.seconds)}
        self.record.outcome({**ended, **_told(prepared)})
        return replace(report, record=str(self.record.path))

    def _bring(self, prepared: Prepared) -> Stage:
        if not changes(prepared.steps):
            stage = self._stage(prepared)
            stage.follow(prepared.running())
            try:
                stage.take(prepared.steps)
            except LaunchFailed as error:
                self.observer.warn(
                    f"{error.message}: the pair runs this release and does not serve, so it is restarted"
                )
                prepared = prepared.broken()
            else:
                return stage
            finally:
                stage.close()
        self._ask(prepared)
        return self._take(prepared, prepared.steps)

    def _ask(self, prepared: Prepared) -> None:
        if prepared.gate.question is not None:
            self.confirm(prepared.gate.question)
        if prepared.ends is not None:
            steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(prepared.steps, 1))
            self.confirm(f"this ends release {prepared.ends}, which {prepared.served.pair} serves now:\n{steps}")

    def _take(self, prepared: Prepared, steps: tuple[Step, ...]) -> Stage:
        stage = self._stage(prepared)
        try:
            stage.take(steps, prepared.release)
        except Interrupted as error:
            if stage.waiting:
                raise _detached(error, prepared) from error
            raise self._undone(error, stage, prepared) from error
        except DsparkError as error:
            raise self._undone(error, stage, prepared) from error
        finally:
            stage.close()
        return stage

    def _stage(self, prepared: Prepared) -> Stage:
        return Stage(self.hosts, prepared.served, self.observer, self.clock, self.limits)

    def _undone(self, error: DsparkError, stage: Stage, prepared: Prepared) -> DsparkError:
        """Stop what was started, bring back what served, keep both logs; the error to raise then."""
        ending = ""
        if stage.touched:
            ending = undo(self.hosts, prepared, self.limits, self.observer, self.clock.shielded())
        for node, watch in stage.watches.items():
            self.record.log(node, (line.text for line in watch.lines()))
        ended = {"outcome": error.id, "message": error.message, "release": prepared.release.id}
        self.record.outcome({**ended, **_told(prepared)})
        logs = f"what the ranks printed: {self.record.path}" if stage.watches else ""
        error.why = "\n".join(part for part in (error.why, ending, logs) if part)
        return error

    def _report(self, prepared: Prepared, stage: Stage, seconds: Mapping[str, float]) -> PairReport:
        served = prepared.served
        base_url = served.base_url(self.hosts["head"].address)
        situation, _ = beside(
            partial(look, self.hosts, served.pair, self.clock), partial(self._remember, prepared), self.clock
        )
        return PairReport(
            pair=served.pair,
            state=State.SERVING,
            profile=served.profile,
            family=served.family,
            release=prepared.release.id,
            base_url=base_url,
            ranks=rank_reports(situation, {}),
            served_name=served.served_name,
            max_model_len=served.max_model_len,
            answers_from_here=answers(base_url),
            changed=stage.touched,
            seconds=seconds,
            pushed_bytes=stage.pushed_bytes,
            warnings=prepared.warnings,
            skipped=prepared.skipped,
        )

    def _remember(self, prepared: Prepared) -> None:
        pair, facts, found = prepared.served.pair, prepared.facts, prepared.fingerprints
        remember(self.hosts, pair, facts, found, self.clock, at=self.record.began, warn=self.observer.warn)


def _told(prepared: Prepared) -> dict[str, object]:
    """What the checks said that was no plain yes."""
    told = [{"id": each.id, "status": each.status, "message": each.message} for each in prepared.findings]
    return {"findings": [each for each in told if each["status"] != "ok"], "skipped": list(prepared.skipped)}


def _detached(error: Interrupted, prepared: Prepared) -> Interrupted:
    return Interrupted(
        f"{error.message}: detached, both ranks of {prepared.served.pair} go on booting",
        why=f"release {prepared.release.id}, profile {prepared.served.profile}",
        remedy="`dspark up` with the same profile waits on, `dspark logs -f` shows both, `dspark down` ends them",
    )
