"""`supervise`: the one owner of restarts. Looks, decides (see plan/supervision.py), restarts, and says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NoReturn

from dspark_deploy.boot.events import Event
from dspark_deploy.errors import DsparkError, Interrupted, LockHeld, LockLost, NotAsWanted
from dspark_deploy.flow.contact import Contact
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.oversight import Oversight
from dspark_deploy.flow.pair import OpenHosts, reach_pair
from dspark_deploy.flow.record import Record, state_home
from dspark_deploy.flow.report import PairReport
from dspark_deploy.flow.restart import NotNow, Restarting
from dspark_deploy.flow.wish import Limits, Wish
from dspark_deploy.plan.supervised import COMMAND
from dspark_deploy.plan.supervision import (
    Decision,
    GiveUp,
    Policy,
    Restart,
    Seen,
    Serving,
    Settle,
    Wait,
    Watched,
    decide,
    remember,
)
from dspark_deploy.remote.clock import Clock
from dspark_deploy.watch.progress import BootProgress

SLICE_S = 0.5  # how soon what an engine tells is seen
_MAY_GO_ON = {"wedged", "stalled"}  # ranks that waited for a link have their time anew once it is back


@dataclass(frozen=True, slots=True)
class Said:
    """One line of what it does and why."""

    at: str  # RFC 3339, the controller's clock
    kind: str  # watches serves waits aside event restarts step warns restarted failed settled gives-up ends
    text: str


Tell = Callable[[Said], None]


def supervise(wish: Wish, policy: Policy, limits: Limits, tell: Tell, clock: Clock, *, turn_s: float = 5.0) -> NoReturn:
    """Keep what is meant to serve serving, until it is interrupted: the pair then stays as it is.

    Raises Interrupted, and NotAsWanted once it gives up.
    """
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        home = state_home(wish.environment, wish.home)
        Supervisor(inventory.name, reached.hosts, policy, limits, tell, clock, home, turn_s).run()


def intend_supervise(wish: Wish, policy: Policy, clock: Clock) -> Said:
    """What the first look would lead to, through the same code, and nothing done. The pair is asked for one token."""
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        told: list[Said] = []
        home = state_home(wish.environment, wish.home)
        supervisor = Supervisor(inventory.name, reached.hosts, policy, Limits(), told.append, clock, home, 1.0)
        return supervisor.intend()


class Supervisor:
    """One pair, watched."""

    def __init__(
        self,
        pair: str,
        hosts: OpenHosts,
        policy: Policy,
        limits: Limits,
        tell: Tell,
        clock: Clock,
        home: Path,
        turn_s: float,
    ) -> None:
        self._pair = pair
        self._policy = policy
        self._tell = tell
        self._clock = clock
        self._home = home
        self._turn_s = turn_s
        self._contact = Contact(hosts, pair, clock, self._say, every_s=turn_s)
        self._oversight = Oversight(pair, self._contact, policy, clock)
        self._restarting = Restarting(hosts, limits, _Narration(self._say), clock)
        self._watched = Watched(clock.now())
        self._unready = False
        self._inside = False  # a restart is under way
        self._said = ("", "")

    def run(self) -> NoReturn:
        """See supervise."""
        self._say("watches", f"{self._pair}: both nodes, their containers, and whether tokens come")
        try:
            while True:
                self.turn()
                self._rest()
        except Interrupted as error:
            self._say("ends", error.message if self._inside else f"{error.message}: the pair stays as it is")
            raise
        finally:
            self._contact.close()

    def intend(self) -> Said:
        """The decision of one look, and nothing done about it."""
        _, decision = self._look()
        self._contact.close()
        match decision:
            case Serving(text):
                kind = "serves"
            case Wait(text):
                kind = "waits"
            case Settle(nodes):
                kind, text = "settled", f"what an earlier run could not confirm to have ended on {' and '.join(nodes)}"
            case Restart(why=text):
                kind = "restarts"
            case GiveUp(text):
                kind = "gives-up"
        return Said(_now(), kind, text)

    def turn(self) -> None:
        """One look, and what follows from it."""
        before = self._watched
        seen, decision = self._look()
        match decision:
            case Serving(detail):
                self._serves(before, seen, detail)
            case Wait(why):
                self._once("waits", why)
            case Settle(nodes):
                self._settle(nodes)
            case Restart() as wanted:
                self._restart(wanted, seen)
            case GiveUp(why):
                self._say("gives-up", why)
                raise NotAsWanted(
                    f"{self._pair} is given up: {why}",
                    remedy="`dspark history` lists its runs, `dspark explain RUN` names the cause where one kept logs; "
                    "mend it, then `dspark up` starts anew",
                )

    def _look(self) -> tuple[Seen, Decision]:
        seen = self._oversight.look(self._watched)
        self._watched = remember(self._watched, seen, self._policy)
        return seen, decide(self._watched, seen, self._policy)

    def _rest(self) -> None:
        until = self._clock.now() + self._turn_s
        while (left := until - self._clock.now()) > 0 and not self._contact.woke.is_set():
            self._clock.sleep(min(SLICE_S, left))
        self._contact.woke.clear()

    def _serves(self, before: Watched, seen: Seen, detail: str) -> None:
        self._unready = False
        self._contact.rebooted.clear()
        release = f"release {seen.meant.release}"
        if before.trouble_at is not None:
            still = f", after {seen.now - before.trouble_at:.1f} s without a sign of life" if before.generated else ""
            self._say("serves", f"{release}: {detail}{still}")
            self._said = ("serves", release)
        self._once("serves", release)

    def _settle(self, nodes: tuple[str, ...]) -> None:
        try:
            self._restarting.settle(self._record())
        except LockHeld as error:
            self._once("aside", error.message)
        except DsparkError as error:
            self._once("waits", error.message)
        else:
            self._say("settled", f"what an earlier run could not confirm to have ended on {' and '.join(nodes)}")
        self._oversight.forget()

    def _restart(self, wanted: Restart, seen: Seen) -> None:
        """Restart, unless the nodes are not ready for it or somebody else changes the pair."""
        try:
            found = self._attempt(wanted, seen)
        except LockHeld as error:
            self._once("aside", error.message)
        except LockLost as error:
            self._say("aside", f"{error.message}; the next look at it comes after {self._policy.backoff_s:g} s")
            self._calm(self._policy.backoff_s)
        except Interrupted:
            raise
        except DsparkError as error:
            self._failed(error, seen)
        else:
            if isinstance(found, NotNow):
                self._not_now(wanted, found)
            else:
                self._restarted(found)
                self._calm(self._policy.backoff(seen.past.restarts + 1))
        if self._inside:
            self._contact.hush()
        self._inside = False
        self._oversight.forget()

    def _attempt(self, wanted: Restart, seen: Seen) -> PairReport | NotNow:
        if self._unready:
            if lacking := self._restarting.lacking(wanted.release, seen.situation, self._pair):
                return NotNow(lacking)
            if wanted.kind in _MAY_GO_ON:
                self._say("waits", "what the nodes lacked is there again: the ranks may go on by themselves")
                self._watched = replace(self._watched, moved_at=self._clock.now())
                return NotNow()
        begins = partial(self._begins, wanted)
        return self._restarting.restart(wanted, seen.situation, self._record(), begins)

    def _begins(self, wanted: Restart) -> None:
        self._inside = True
        self._say("restarts", wanted.why)

    def _failed(self, error: DsparkError, seen: Seen) -> None:
        if not self._inside:  # nothing was changed: what could not be asked is asked again
            self._once("waits", error.message)
            return
        self._say("failed", " | ".join(filter(None, (error.message, *error.why.splitlines()))))
        self._calm(self._policy.backoff(seen.past.restarts + 1))

    def _not_now(self, wanted: Restart, found: NotNow) -> None:
        self._unready = bool(found.unready)
        lacking = "; ".join(found.unready)
        if lacking and self._said != (
            "lacking",
            lacking,
        ):  # said once, though the seconds in it grow
            self._say("waits", f"{wanted.why}; no restart before that is mended: {lacking}")
        if lacking:
            self._said = ("lacking", lacking)

    def _restarted(self, report: PairReport) -> None:
        now, began = self._clock.now(), self._watched.trouble_at
        took = sum(report.seconds.values())
        after = "" if began is None else f"{now - began:.1f} s after it was first seen not to, "
        self._say("restarted", f"release {report.release} serves again: {after}{took:.1f} s for the restart")
        self._watched = replace(self._watched, moved_at=now, trouble_at=None, generated=True, ranks={})

    def _calm(self, seconds: float) -> None:
        self._watched = replace(self._watched, calm_until=self._clock.now() + seconds)

    def _record(self) -> Record:
        return Record(self._home, self._pair, COMMAND, lambda text: self._say("warns", text))

    def _once(self, kind: str, text: str) -> None:
        """Say it where it is not what was said last."""
        if (kind, text) != self._said:
            self._say(kind, text)
        self._said = (kind, text)

    def _say(self, kind: str, text: str) -> None:
        self._said = ("", "")
        self._tell(Said(_now(), kind, text))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class _Narration:
    """The steps of a restart as lines of their own. See Observer."""

    say: Callable[[str, str], None]

    def begin(self, total: int) -> None:
        """See Observer. The lines carry no number."""

    def started(self, step: str) -> None:
        """See Observer."""
        self.say("step", step)

    def finished(self, detail: str = "") -> None:
        """See Observer. The next step's line says that this one is done."""

    def note(self, text: str) -> None:
        """See Observer."""
        self.say("step", text)

    def progress(self, boot: BootProgress) -> None:
        """See Observer. Lines are for the journal of a service: each step is enough."""

    def event(self, event: Event) -> None:
        """See Observer. It stands in the run's record."""

    def warn(self, text: str) -> None:
        """See Observer."""
        self.say("warns", text)
