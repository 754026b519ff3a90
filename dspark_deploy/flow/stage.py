"""Take a plan's steps on the open nodes, and remember what was started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import assert_never

from pydantic import SecretStr

from dspark_deploy.execute.key import keep_key
from dspark_deploy.execute.push import push_release
from dspark_deploy.execute.ranks import start_rank, stop_rank
from dspark_deploy.facts.node import Container
from dspark_deploy.facts.patches import PatchOutcome, patch_outcomes
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.vigil import Vigil
from dspark_deploy.flow.wish import Limits
from dspark_deploy.measure.smoke import Smoke, smoke
from dspark_deploy.plan.launch import (
    AwaitApi,
    AwaitMemory,
    AwaitRendezvous,
    GiveKey,
    Prove,
    PushRelease,
    StartRank,
    Step,
    StopRank,
    TakeKey,
)
from dspark_deploy.plan.served import Served
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import alongside, together
from dspark_deploy.remote.served import ServedApi
from dspark_deploy.render.release import Release
from dspark_deploy.watch.boot import BootWatch
from dspark_deploy.watch.memory import await_memory
from dspark_deploy.watch.readiness import TURN_S, await_api
from dspark_deploy.watch.rendezvous import await_rendezvous


class Stage:
    """The two nodes while one release is brought up on them."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        served: Served,
        observer: Observer,
        clock: Clock,
        limits: Limits,
        *,
        key: SecretStr | None = None,  # what the API is asked with; None: the head's own
    ) -> None:
        self._hosts = hosts
        self._served = served
        self._observer = observer
        self._clock = clock
        self._limits = limits
        self._key = key
        self._vigil = Vigil(hosts, served, observer, clock, stall_s=limits.stall_s)
        self.touched = False  # a container was started or stopped
        self.waiting = False  # both ranks are started: an interruption leaves them to go on
        self.pushed_bytes = 0
        self.smoke: Smoke | None = None
        self.seconds: dict[str, float] = {}
        self.keys_before: dict[str, SecretStr | None] = {}  # by node, of those whose API key was changed

    @property
    def boot(self) -> BootWatch:
        """Both ranks, as far as they were started or followed."""
        return self._vigil.boot

    def patches(self) -> dict[str, tuple[PatchOutcome, ...]]:
        """What became of the user's own patches, by node, as far as the ranks' logs tell of any."""
        ranks = self.boot.ranks.items()
        found = {node: patch_outcomes(heard.line.text for heard in watch.heard()) for node, watch in ranks}
        return {node: outcomes for node, outcomes in found.items() if outcomes}

    def follow(self, containers: Mapping[str, Container]) -> None:
        """Watch ranks that ran before this stage was set."""
        for node, container in containers.items():
            self.boot.start(self._hosts[node], container, attached=True)

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
        self._vigil.close()

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
            case GiveKey() | TakeKey():
                return self._change_key(step)
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

    def _change_key(self, step: GiveKey | TakeKey) -> str:
        host = self._hosts["head" if isinstance(step, GiveKey) else step.node]
        key = host.api_key if isinstance(step, GiveKey) else None
        self.keys_before[host.name] = keep_key(host, self._served.pair, key)
        return "gone" if key is None else "its user alone can read it"

    def _start(self, step: StartRank) -> str:
        self.touched = True
        host = self._hosts[step.node]
        container = start_rank(host, self._served.pair, step.release, self._clock.shielded())
        self.boot.start(host, container, marker=self._served.rendezvous_marker)
        return container.name

    def _await(self, step: AwaitMemory | AwaitRendezvous | AwaitApi) -> str:
        self._vigil.begin()
        match step:
            case AwaitMemory():
                return await_memory(self._hosts, step.utilization, self._clock)
            case AwaitRendezvous():
                watch, limit_s = self.boot.ranks[step.node], self._limits.rendezvous_s
                await_rendezvous(watch, self._vigil.turn, self._clock, limit_s=limit_s)
                return ""
            case AwaitApi():
                return self._await_api()

    def _await_api(self) -> str:
        self.waiting = True
        with self._api() as api:
            await_api(api, self._served, self.boot.ranks, self._vigil.turn, self._clock, limit_s=self._limits.api_s)
        return f"{self._served.served_name}, {self._served.max_model_len} tokens"

    def _prove(self) -> str:
        self._vigil.begin()
        with self._api() as api:
            ask = partial(smoke, api, self._served.served_name)
            # An answer may take minutes while kernels compile: a rank that dies meanwhile is told at once.
            self.smoke = alongside(ask, self._vigil.turn, self._clock, turn_s=TURN_S)
        self.boot.settle()
        for warning in self.smoke.warnings:
            self._observer.warn(warning)
        return f"answered {self.smoke.replies[0].text.strip()[:60]!r}"

    def _api(self) -> ServedApi:
        endpoint = self._served.endpoint
        return ServedApi(self._hosts["head"], endpoint.probe_address, endpoint.port, key=self._key)
