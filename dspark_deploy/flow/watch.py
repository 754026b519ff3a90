"""`watch`: attach to a boot, whoever began it, show how far it is, and note it once it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from dspark_deploy.errors import Interrupted, LaunchFailed, NotAsWanted
from dspark_deploy.execute.journal import try_journals
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.completion import complete
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.releases import read_served
from dspark_deploy.flow.report import PairReport, rank_reports
from dspark_deploy.flow.vigil import Vigil
from dspark_deploy.flow.wish import Limits, Wish
from dspark_deploy.plan.journal import detached
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.plan.served import Served
from dspark_deploy.plan.situation import Situation, State, state_of_containers
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import alongside
from dspark_deploy.remote.served import ServedApi
from dspark_deploy.watch.gather import look
from dspark_deploy.watch.generation import Generation, ask_for_a_token
from dspark_deploy.watch.readiness import TURN_S, await_api

LOOK_S = 1.0
START_S = 60.0  # the head's container may take so long to start, once the worker is at the rendezvous


def watch_boot(wish: Wish, limits: Limits, observer: Observer, clock: Clock) -> PairReport:
    """Follow the pair's boot to its end; a pair that serves is told at once.

    Changes nothing on the nodes but the note of a boot that another run began and left. Raises NotAsWanted where
    nothing boots, and where the boot fails, stalls or takes longer than it may; Interrupted, and then all goes on.
    """
    inventory = load_inventory_of(wish)
    with open_pair(inventory, wish, clock) as hosts:
        try:
            return WatchBoot(inventory.name, hosts, limits, observer, clock).watch()
        except Interrupted as error:
            raise Interrupted(
                f"{error.message}: no longer watching, the pair goes on as it is",
                remedy="`dspark watch` attaches again",
            ) from error


@dataclass(frozen=True, slots=True)
class WatchBoot:
    """One look at a pair that boots. `limits` are those of `up`."""

    pair: str
    hosts: Mapping[str, Host]
    limits: Limits
    observer: Observer
    clock: Clock

    def watch(self) -> PairReport:
        """See watch_boot."""
        situation = self._both_started()
        served = read_served(self.hosts["head"], self.pair, situation.release or "")
        if served is None:
            raise NotAsWanted(
                f"head: it keeps no readable manifest of release {situation.release}, so its API can't be asked",
                remedy="`dspark logs -f` shows both ranks, `dspark up` starts the pair anew",
                node="head",
            )
        vigil = Vigil(self.hosts, served, self.observer, self.clock, stall_s=self.limits.stall_s)
        try:
            self._until_it_serves(vigil, served, situation)
        except LaunchFailed as error:
            self._note(vigil, served, situation, failed=error.message)
            raise NotAsWanted(error.message, why=error.why, remedy=error.remedy, node=error.node) from error
        finally:
            vigil.close()
        self._note(vigil, served, situation)
        return self._report(served)

    def _both_started(self) -> Situation:
        """What runs, once both ranks do. A worker that was started just now has its head to come."""
        told = False
        while True:
            situation = look(self.hosts, self.pair, self.clock)
            state = state_of_containers(situation)
            if state is State.BOOTING:
                return situation
            worker = situation.alive("worker")
            if state is not State.SPLIT or worker is None or not self._is_new(worker):
                raise _nothing_boots(self.pair, state)
            if not told:
                self.observer.note("the worker runs, its head is about to be started")
            told = True
            self.clock.sleep(LOOK_S)

    def _is_new(self, worker: Container) -> bool:
        if worker.started_at is None:
            return True
        age_s = self.hosts["worker"].engine().time_s() - datetime.fromisoformat(worker.started_at).timestamp()
        return age_s < self.limits.rendezvous_s + START_S

    def _until_it_serves(self, vigil: Vigil, served: Served, situation: Situation) -> None:
        endpoint = served.endpoint
        with ServedApi(self.hosts["head"], endpoint.probe_address, endpoint.port) as api:
            ask = partial(ask_for_a_token, api, served, self.clock)
            if ask().verdict == "generates":
                return
            self.observer.begin(2)
            self.observer.started("wait until the API answers, both ranks watched")
            for node in HEAD_FIRST:
                if (rank := situation.alive(node)) is not None:
                    vigil.boot.start(self.hosts[node], rank, attached=True)
            vigil.begin()
            await_api(api, served, vigil.boot.ranks, vigil.turn, self.clock, limit_s=self.limits.api_s)
            self.observer.finished(f"{served.served_name}, {served.max_model_len} tokens")
            self.observer.started("see whether it generates")
            self.observer.finished(self._first_token(vigil, ask).detail)
            vigil.boot.settle()

    def _first_token(self, vigil: Vigil, ask: partial[Generation]) -> Generation:
        """The first one may take its time, while kernels compile."""
        deadline = self.clock.now() + self.limits.api_s
        while (found := alongside(ask, vigil.turn, self.clock, turn_s=TURN_S)).verdict != "generates":
            if self.clock.now() > deadline:
                raise LaunchFailed(
                    f"head: the API answers and does not generate: {found.detail}",
                    remedy="`dspark logs` shows why, `dspark up` restarts it",
                    node="head",
                )
            self.clock.sleep(LOOK_S)
        return found

    def _note(self, vigil: Vigil, served: Served, situation: Situation, *, failed: str = "") -> None:
        """In the history, where another run left that to whoever comes. A boot that may go on is not over."""
        if failed and not vigil.boot.deaths:
            return
        shielded = self.clock.shielded()
        journals = try_journals(self.hosts, self.pair, shielded)
        mark = detached(journals.values(), situation.release)
        if mark is not None:
            told = {"release": situation.release, "profile": served.profile, "family": served.family}
            complete(self.hosts, self.pair, mark, shielded, boot=vigil.boot, failed=failed, **told)

    def _report(self, served: Served) -> PairReport:
        situation = look(self.hosts, self.pair, self.clock)
        return PairReport(
            pair=self.pair,
            state=State.SERVING,
            profile=served.profile,
            family=served.family,
            release=situation.release,
            base_url=served.base_url(self.hosts["head"].address),
            ranks=rank_reports(situation, {}),
            served_name=served.served_name,
            max_model_len=served.max_model_len,
            keyed=served.keyed,
        )


def _nothing_boots(pair: str, state: State) -> NotAsWanted:
    if state is State.DOWN:
        return NotAsWanted(f"nothing of {pair} runs, so there is no boot to watch", remedy="`dspark up` starts it")
    return NotAsWanted(
        f"{pair} is {state}: that becomes no serving pair by itself",
        remedy="`dspark up` restarts the pair, `dspark status` says more",
    )
