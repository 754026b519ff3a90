"""Take a plan's steps on the open nodes, and remember what was started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import assert_never

from dspark_deploy.execute.push import push_release
from dspark_deploy.execute.ranks import start_rank, stop_rank
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.wish import Limits
from dspark_deploy.measure.smoke import Smoke, smoke
from dspark_deploy.plan.launch import (
    AwaitApi,
    AwaitMemory,
    AwaitRendezvous,
    Prove,
    PushRelease,
    StartRank,
    Step,
    StopRank,
)
from dspark_deploy.plan.served import Served
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import alongside, together
from dspark_deploy.remote.served import ServedApi
from dspark_deploy.render.release import Release
from dspark_deploy.watch.memory import await_memory
from dspark_deploy.watch.rank import RankWatch
from dspark_deploy.watch.readiness import await_api, last_words
from dspark_deploy.watch.rendezvous import await_rendezvous

PROOF_TURN_S = 5


class Stage:
    """The two nodes while one release is brought up on them."""

    def __init__(
        self, hosts: Mapping[str, Host], served: Served, observer: Observer, clock: Clock, limits: Limits
    ) -> None:
        self._hosts = hosts
        self._served = served
        self._observer = observer
        self._clock = clock
        self._limits = limits
        self.watches: dict[str, RankWatch] = {}
        self.touched = False  # a container was started or stopped
        self.waiting = False  # both ranks are started: an interruption leaves them to go on
        self.pushed_bytes = 0
        self.smoke: Smoke | None = None
        self.seconds: dict[str, float] = {}

    def follow(self, containers: Mapping[str, Container]) -> None:
        """Watch ranks that ran before this stage was set."""
        for node, container in containers.items():
            self.watches[node] = RankWatch(self._hosts[node], container)

    def take(self, steps: Sequence[Step], release: Release | None = None) -> None:
        """Bring about `steps` in order. `release` holds the files for a PushRelease."""
        self._observer.begin(len(steps))
        for step in steps:
            self._clock.sleep(0)  # between two steps is where an interruption does no harm
            self._observer.started(str(step))
            began = self._clock.now()
            detail = self._take(step, release)
            self.seconds[str(step)] = self._clock.now() - began
            self._observer.finished(detail)

    def close(self) -> None:
        """Stop following both logs. No container is touched."""
        for watch in self.watches.values():
            watch.close()

    def _take(self, step: Step, release: Release | None) -> str:
        match step:
            case PushRelease():
                return self._push(step, release)
            case StopRank():
                self.touched = True
                stop_rank(self._hosts[step.node], step.container)
                return "gone"
            case StartRank():
                return self._start(step)
            case AwaitMemory() | AwaitRendezvous() | AwaitApi():
                return self._await(step)
            case Prove():
                return self._prove()
            case _:
                assert_never(step)

    def _push(self, step: PushRelease, release: Release | None) -> str:
        if release is None:
            raise AssertionError("a plan with a push needs the rendered files")
        work = {
            node: partial(
                push_release,
                self._hosts[node],
                self._served.pair,
                step.release,
                release.of(node),
                (step.release,),
            )
            for node in step.nodes
        }
        sent = sum(together(work, self._clock).values())
        self.pushed_bytes += sent
        return f"{sent} bytes"

    def _start(self, step: StartRank) -> str:
        self.touched = True
        host = self._hosts[step.node]
        container = start_rank(host, self._served.pair, step.release, self._clock.shielded())
        self.watches[step.node] = RankWatch(host, container, self._served.rendezvous_marker)
        return container.name

    def _await(self, step: AwaitMemory | AwaitRendezvous | AwaitApi) -> str:
        match step:
            case AwaitMemory():
                return await_memory(self._hosts, step.utilization, self._clock)
            case AwaitRendezvous():
                where, limit_s = self._hosts[step.node].where, self._limits.rendezvous_s
                await_rendezvous(self.watches[step.node], where, self._clock, limit_s=limit_s)
                return ""
            case AwaitApi():
                return self._await_api()

    def _await_api(self) -> str:
        self.waiting = True
        with self._api() as api:
            await_api(
                api,
                self._served,
                list(self.watches.values()),
                self._clock,
                self._observer.note,
                limit_s=self._limits.api_s,
            )
        return f"{self._served.served_name}, {self._served.max_model_len} tokens"

    def _prove(self) -> str:
        with self._api() as api:
            ask = partial(smoke, api, self._served.served_name)
            self.smoke = alongside(ask, self._while_proving, self._clock, turn_s=PROOF_TURN_S)
        for warning in self.smoke.warnings:
            self._observer.warn(warning)
        return f"answered {self.smoke.replies[0].text.strip()[:60]!r}"

    def _while_proving(self) -> None:
        """An answer may take minutes while kernels compile: a rank that dies meanwhile is told at once."""
        for watch in self.watches.values():
            watch.check()
        self._observer.note(f"waiting for text; {last_words(list(self.watches.values()))}")

    def _api(self) -> ServedApi:
        endpoint = self._served.endpoint
        return ServedApi(self._hosts["head"], endpoint.probe_address, endpoint.port)
