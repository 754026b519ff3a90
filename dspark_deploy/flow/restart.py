"""One restart by `supervise`, under the pair's lock: the release that is meant to serve, from the files that both
nodes keep. Nothing is rendered, so nothing changes but what runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dspark_deploy.errors import DsparkError, Interrupted, LockLost
from dspark_deploy.execute.journal import note, read_journals
from dspark_deploy.execute.lock import locked
from dspark_deploy.flow.bring import Bring
from dspark_deploy.flow.history import prepare_rollback
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import OpenHosts
from dspark_deploy.flow.record import Record
from dspark_deploy.flow.releases import read_files
from dspark_deploy.flow.renew import renewal
from dspark_deploy.flow.report import PairReport
from dspark_deploy.flow.target import Target
from dspark_deploy.flow.tombstones import heed
from dspark_deploy.flow.wish import Limits
from dspark_deploy.plan.journal import Entry
from dspark_deploy.plan.situation import Situation
from dspark_deploy.plan.supervised import BEGUN, begun, meant_to_serve
from dspark_deploy.plan.supervision import Restart
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.parallel import together
from dspark_deploy.watch.gather import gather, look
from dspark_deploy.watch.ready import missing, needs_of


@dataclass(frozen=True, slots=True)
class NotNow:
    """Nothing was changed. `unready`: what the nodes lack; empty where the pair is no longer as it was judged."""

    unready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restarting:
    """What every restart of one pair needs."""

    hosts: OpenHosts
    limits: Limits
    observer: Observer
    clock: Clock

    def restart(
        self, wanted: Restart, judged: Situation, record: Record, begins: Callable[[], None]
    ) -> PairReport | NotNow:
        """Bring `wanted` about, if the pair still is what was `judged`; `begins` is called before anything changes.

        Raises LockHeld while another run has it, and what Bring raises: what was started is stopped again then.
        """
        with locked(self.hosts, record.pair, record.owner, self.clock) as guarded:
            journals = read_journals(self.hosts, record.pair, guarded)
            there = look(self.hosts, record.pair, guarded)
            if there != judged or meant_to_serve(journals.values()).release != wanted.release:
                return NotNow()
            if unready := self.lacking(wanted.release, there, record.pair):
                return NotNow(unready)
            begins()
            self._note(record, wanted, BEGUN, begun(wanted.kind, wanted.why), guarded)
            try:
                target = self._from_kept(record, wanted, guarded)
                renew = renewal(self.hosts, guarded)
                bring = Bring(self.limits, self.observer, guarded, _nothing_to_ask, self.hosts, record, renew=renew)
                return bring.to(target)
            except (Interrupted, LockLost) as error:
                self._note(record, wanted, error.id, error.message, guarded)
                raise

    def lacking(self, release: str, situation: Situation, pair: str) -> tuple[str, ...]:
        """What the nodes lack for a start of `release` now. Raises StepFailed or NodeUnreachable."""
        facts = gather(self.hosts, pair, self.clock)
        files = together(
            {node: partial(read_files, host, pair, release) for node, host in self.hosts.items()}, self.clock
        )
        return tuple(
            each
            for node, known in facts.items()
            for each in missing(known, needs_of(files[node]), runs=situation.alive(node) is not None)
        )

    def settle(self, record: Record) -> None:
        """End what an earlier run could not confirm to have ended. Raises LockHeld, StepFailed, NodeUnreachable."""
        with locked(self.hosts, record.pair, record.owner, self.clock) as guarded:
            marks = {name for each in read_journals(self.hosts, record.pair, guarded).values() for name in each.marks}
            heed(marks, self.hosts, record.pair, self.observer, guarded)

    def _from_kept(self, record: Record, wanted: Restart, clock: Clock) -> Target:
        """The release as both nodes keep it. What Bring raises it notes itself; what is raised before is noted here."""
        try:
            return prepare_rollback(self.hosts, record.pair, wanted.release, self.observer, clock).broken()
        except (Interrupted, LockLost):
            raise
        except DsparkError as error:
            self._note(record, wanted, error.id, error.message, clock)
            raise

    def _note(self, record: Record, wanted: Restart, outcome: str, message: str, clock: Clock) -> None:
        entry = Entry(
            record.path.name, record.began, record.who, record.command, outcome, wanted.release, message=message
        )
        for error in note(self.hosts, record.pair, clock.shielded(), entry=entry).values():
            self.observer.warn(f"{error.message}: the history of that node misses this restart")


def _nothing_to_ask(text: str) -> None:
    raise AssertionError(f"a restart of what serves asks nothing: {text}")
