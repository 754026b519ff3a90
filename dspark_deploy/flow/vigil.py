"""What is done at every turn while a boot is waited for: judge both ranks, call a stall, tell how far they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dspark_deploy.errors import DsparkError
from dspark_deploy.execute.journal import read_journals
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.flow.observer import Observer
from dspark_deploy.plan.journal import Entry, merged
from dspark_deploy.plan.served import Served
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import Task
from dspark_deploy.watch.boot import BootWatch
from dspark_deploy.watch.progress import BootProgress, Expectation, progress_of
from dspark_deploy.watch.stall import StallWatch

LEARN_S = 2.0  # into a wait: what is over before then needs no estimate
TELL_S = 0.2  # between two tellings


class Vigil:
    """One boot of `served`, from its first rank's start on."""

    def __init__(
        self, hosts: Mapping[str, Host], served: Served, observer: Observer, clock: Clock, *, stall_s: float
    ) -> None:
        self._hosts = hosts
        self._served = served
        self._observer = observer
        self._clock = clock
        self.boot = BootWatch(clock, bundled_rules)
        self._stall = StallWatch(hosts, self.boot, clock, stall_s)
        self._expectation = Expectation()
        self._learning: Task[Sequence[Entry]] | None = None
        self._learned = False
        self._began_s = self._told_s = clock.now()

    def begin(self) -> None:
        """A wait begins."""
        self._began_s = self._clock.now()

    def turn(self) -> None:
        """Raises LaunchFailed when this boot won't serve."""
        now_s = self._clock.now()
        try:
            self.boot.turn(now_s - self._began_s)
            self._stall.turn()
        finally:
            for event in self.boot.told():
                self._observer.event(event)
        if now_s - self._told_s >= TELL_S:
            self._told_s = now_s
            self._learn(now_s)
            self._observer.progress(self.progress())

    def progress(self) -> BootProgress:
        """How far it is now."""
        return progress_of(self.boot, self._expectation, self._clock.now())

    def close(self) -> None:
        """Stop following. No container is touched."""
        for event in self.boot.told():
            self._observer.event(event)
        self.boot.close()

    def _learn(self, now_s: float) -> None:
        """Read what earlier boots took, once and beside the wait. Without it the published boot's times stand."""
        if self._learning is None:
            if now_s - self._began_s >= LEARN_S:
                self._learning = Task(self._history)
        elif self._learning.done.is_set() and not self._learned:
            self._learned = True
            try:
                self._expectation = Expectation(self._learning.result(), self._served.profile)
            except DsparkError as error:
                self._observer.note(f"{error.message}: the times shown are those of the published boot")

    def _history(self) -> Sequence[Entry]:
        return merged(read_journals(self._hosts, self._served.pair, self._clock.shielded()).values())
