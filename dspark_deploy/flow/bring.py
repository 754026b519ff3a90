"""Take the pair to a target under its lock: ask where something ends, take the steps, undo what fails, note it down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dspark_deploy.errors import (
    DsparkError,
    Interrupted,
    LaunchFailed,
    LockLost,
    NodeUnreachable,
    NotAsWanted,
    StepFailed,
)
from dspark_deploy.execute.journal import note, tombstones
from dspark_deploy.facts.patches import failed
from dspark_deploy.flow.completion import boot_notes
from dspark_deploy.flow.minutes import Minutes
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.record import Record
from dspark_deploy.flow.renew import Renew, never
from dspark_deploy.flow.report import PairReport, rank_reports
from dspark_deploy.flow.stage import Stage
from dspark_deploy.flow.target import Target, plan_document
from dspark_deploy.flow.undo import undo
from dspark_deploy.flow.wish import Confirm, Limits
from dspark_deploy.plan.journal import BOOTING, UNCONFIRMED, Entry, Mark
from dspark_deploy.plan.launch import HEAD_FIRST, changes
from dspark_deploy.plan.situation import Situation, State
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt
from dspark_deploy.remote.reach import answers
from dspark_deploy.watch.boot import BootWatch
from dspark_deploy.watch.gather import look


@dataclass(frozen=True, slots=True)
class Bring:
    """One run on open nodes, under their lock. `remember` is called once the pair serves."""

    limits: Limits
    observer: Observer
    clock: Clock
    confirm: Confirm
    hosts: Mapping[str, Host]
    record: Record
    remember: Callable[[], None] = lambda: None
    told: Mapping[str, Any] = field(default_factory=dict)  # what the checks said, for the record
    basis: Mapping[str, Any] = field(default_factory=dict)  # file of the record -> what it rests on: facts
    returns: bool = True  # undo what fails; else leave the wreck for study
    renew: Renew = never

    def to(self, target: Target, seconds: Mapping[str, float] | None = None) -> PairReport:
        """Bring the pair to `target` and prove it. `seconds` are those of the phases before."""
        for warning in target.warnings:
            self.observer.warn(warning)
        stage = self._bring(target)
        phases = {**(seconds or {}), **stage.seconds}
        report = replace(self._report(target, stage, phases), patches=stage.patches())
        passed_over = tuple(f"{node}: {each}" for node, outcomes in report.patches.items() for each in failed(outcomes))
        for warning in passed_over:
            self.observer.warn(warning)
        self._keep(stage, {"outcome": "serving", "release": target.release, "seconds": phases})
        return replace(report, record=str(self.record.path), warnings=(*report.warnings, *passed_over))

    def _bring(self, target: Target) -> Stage:
        if not changes(target.steps):
            stage = self._stage(target)
            stage.follow(target.running())
            try:
                stage.take(target.steps)
            except LaunchFailed as error:
                self.observer.warn(
                    f"{error.message}: the pair runs this release and does not serve, so it is restarted"
                )
                target = target.broken()
            else:
                return stage
            finally:
                stage.close()
        self._ask(target)
        return self._take(target)

    def _ask(self, target: Target) -> None:
        if target.question is not None:
            self.confirm(target.question)
        if target.ends is not None:
            steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(target.steps, 1))
            self.confirm(f"this ends release {target.ends}, which {target.served.pair} serves now:\n{steps}")

    def _take(self, target: Target) -> Stage:
        self.record.document("plan", plan_document(target))
        for name, document in self.basis.items():
            self.record.document(name, document)
        stage = self._stage(target)
        try:
            stage.take(target.steps, target.files)
        except LockLost:
            raise
        except Interrupted as error:
            if stage.waiting:
                self._keep(stage, {"outcome": "detached", "release": target.release})
                raise self._detached(error, target) from error
            raise self._failed(error, stage, target) from error
        except DsparkError as error:
            raise self._failed(error, stage, target) from error
        finally:
            stage.close()
        return stage

    def _stage(self, target: Target) -> Stage:
        return Stage(self.hosts, target.served, Minutes(self.observer, self.record), self.clock, self.limits)

    def _failed(self, error: DsparkError, stage: Stage, target: Target) -> DsparkError:
        """Say it, undo it, keep both logs, note it on the nodes; the error to raise then."""
        if isinstance(error, LaunchFailed) and stage.boot.ranks:
            self.observer.warn(error.message)  # at once: undoing it takes its time
        message = error.message
        told = self._undone(error, stage, target) if stage.touched else error
        self._keep(stage, {"outcome": told.id, "message": message, "release": target.release})
        if stage.touched:
            entry = self._entry(target, told.id, stage.seconds, stage.boot, message)
            self._note(note(self.hosts, target.served.pair, self.clock.shielded(), entry=entry))
        logs = f"what the ranks printed: {self.record.path}" if stage.boot.ranks else ""
        printed = (each.printed for outcomes in stage.patches().values() for each in failed(outcomes) if each.required)
        told.why = _lines(*printed, told.why, logs)
        return told

    def _keep(self, stage: Stage, outcome: Mapping[str, Any]) -> None:
        """What becomes of the run's folder at its end."""
        boot = stage.boot
        if stage.touched:
            for node, watch in boot.ranks.items():
                self.record.log(node, (heard.line.text for heard in watch.heard()))
        figures: dict[str, Any] = {"figures": boot.figures(), "phases": boot.seconds()} if boot.ranks else {}
        patches = {node: [asdict(each) for each in found] for node, found in stage.patches().items()}
        figures |= {"patches": patches} if patches else {}
        self.record.outcome({**outcome, **figures, **self.told})

    def _undone(self, error: DsparkError, stage: Stage, target: Target) -> DsparkError:
        """Take back what this run did, unless it is to be studied. Returns what is to be told then."""
        if not (self.returns or isinstance(error, Interrupted)):
            error.why = _lines(error.why, "what was started is left as it is, for study: `dspark down` ends it")
            return error
        shielded = self.clock.shielded()
        try:
            limits, observer, keys = self.limits, Minutes(self.observer, self.record), stage.keys_before
            ending = undo(self.hosts, target, limits, observer, shielded, self._marked, self.renew, keys)
        except (NotAsWanted, LockLost) as unclean:
            unclean.why = _lines(f"it began with: {error.message}", unclean.why)
            return unclean
        if isinstance(error, NodeUnreachable):  # whose exit code would say that nothing was changed
            error = LaunchFailed(error.message, why=error.why, remedy=error.remedy, node=error.node)
        error.why = _lines(error.why, ending)
        return error

    def _detached(self, error: Interrupted, target: Target) -> Interrupted:
        mark = Mark(self.record.began, self.record.who, target.release, target.served.profile, self.record.path.name)
        shielded = self.clock.shielded()
        self._note(note(self.hosts, target.served.pair, shielded, marks={BOOTING: mark}))
        return Interrupted(
            f"{error.message}: detached, both ranks of {target.served.pair} go on booting",
            why=f"release {target.release}, profile {target.served.profile}",
            remedy="`dspark watch` shows it from any machine and notes it once it serves, `dspark down` ends it",
        )

    def _report(self, target: Target, stage: Stage, seconds: Mapping[str, float]) -> PairReport:
        served = target.served
        base_url = served.base_url(self.hosts["head"].address)
        situation = self._conclude(target, stage, seconds)
        return PairReport(
            pair=served.pair,
            state=State.SERVING,
            profile=served.profile,
            family=served.family,
            release=target.release,
            base_url=base_url,
            ranks=rank_reports(situation, {}),
            served_name=served.served_name,
            max_model_len=served.max_model_len,
            keyed=served.keyed,
            answers_from_here=answers(base_url),
            changed=stage.touched,
            seconds=seconds,
            pushed_bytes=stage.pushed_bytes,
            warnings=target.warnings,
            skipped=target.skipped,
        )

    def _conclude(self, target: Target, stage: Stage, seconds: Mapping[str, float]) -> Situation:
        """Leave word on the nodes and look at both once more. The pair serves: this is not interrupted."""
        shielded, pair = self.clock.shielded(), target.served.pair
        work: dict[str, Callable[[], Any]] = {
            "look": lambda: look(self.hosts, pair, shielded),
            "remember": self.remember,
            "journal": lambda: self._serving(target, stage, seconds),
        }
        found: dict[str, Any] = attempt(work, shielded)
        try:
            if isinstance(lost := found["look"], NodeUnreachable) and lost.node is not None:
                self.renew(lost.node)
                found = {**found, "look": look(self.hosts, pair, shielded)}
            for outcome in found.values():
                if isinstance(outcome, BaseException):
                    raise outcome
        except (NodeUnreachable, StepFailed, LockLost) as error:
            raise NotAsWanted(
                f"release {target.release} was proved to serve, and then: {error.message}",
                why=error.why,
                remedy="`dspark status` says whether it serves still",
                node=error.node,
            ) from error
        situation: Situation = found["look"]
        return situation

    def _serving(self, target: Target, stage: Stage, seconds: Mapping[str, float]) -> None:
        """Note a start, or one that another run began and left; a run that changed nothing leaves no trace."""
        if not stage.touched and BOOTING not in target.marks:
            return
        entry = self._entry(target, "serving", seconds, stage.boot)
        marks: dict[str, Mark | None] = {BOOTING: None, **{f"{UNCONFIRMED}{node}": None for node in HEAD_FIRST}}
        self._note(note(self.hosts, target.served.pair, self.clock.shielded(), entry=entry, marks=marks))

    def _marked(self, unclean: Mapping[str, str]) -> None:
        """Leave tombstones (node -> why) for what could not be stopped, on every node that can be reached."""
        marks = tombstones(unclean, self.record.began, self.record.who)
        self._note(note(self.hosts, self.record.pair, self.clock.shielded(), marks=marks))

    def _note(self, failed: Mapping[str, DsparkError]) -> None:
        for error in failed.values():
            self.observer.warn(f"{error.message}: the history of that node misses this run")

    def _entry(
        self, target: Target, outcome: str, seconds: Mapping[str, float], boot: BootWatch, message: str = ""
    ) -> Entry:
        return Entry(
            run=self.record.path.name,
            at=self.record.began,
            who=self.record.who,
            command=self.record.command,
            outcome=outcome,
            release=target.release,
            profile=target.served.profile,
            family=target.served.family,
            message=message,
            seconds={name: round(value, 2) for name, value in seconds.items()},
            warnings=target.warnings,
            **boot_notes(boot),
        )


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
