"""Ask the API of a pair that runs whole: who answers, whether anything is generated, how much there is to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dspark_deploy.errors import DsparkError
from dspark_deploy.flow.releases import read_served
from dspark_deploy.plan.served import Served
from dspark_deploy.plan.situation import Situation
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt, together
from dspark_deploy.remote.served import Api, ServedApi
from dspark_deploy.watch.generation import Generation, ask_for_a_token, feel_pulse
from dspark_deploy.watch.metrics import RATE_S, Load, Reading, Server, load_of, read_metrics, read_server

ASK_EVERY_S = 30.0  # of a pair that is watched and has generated when it was asked last


@dataclass(frozen=True, slots=True)
class Told:
    """What the API told, and what the nodes' tags name."""

    served: Served
    base_url: str
    generation: Generation
    server: Server | None
    load: Load | None
    images: Mapping[str, str | None] = field(default_factory=dict)  # node -> id that the release's tag names there


@dataclass
class Probing:
    """One pair's API, asked once or often. Between two looks it keeps the counters, so that rates need no waiting."""

    pair: str
    clock: Clock
    _served: tuple[str, Served] | None = None  # of which release
    _reading: Reading | None = None
    _asked: tuple[tuple[Any, ...], float, Generation] | None = None  # of which containers, when, and its answer

    def ask(self, hosts: Mapping[str, Host], situation: Situation) -> Told | None:
        """None where the head keeps no manifest that says what its API should serve."""
        head = hosts["head"]
        served = self._manifest(head, situation.release or "")
        if served is None:
            return None
        with ServedApi(head, served.endpoint.probe_address, served.port) as api:
            load, before = self._load(api)
            generation = self._generation(api, served, situation, before)
            server = read_server(api)
        return Told(
            served=served,
            base_url=served.base_url(head.address),
            generation=replace(generation, counters=None),  # they are the load's
            server=server,
            load=load,
            images=self._images(hosts, served),
        )

    def _manifest(self, head: Host, release: str) -> Served | None:
        if self._served is None or self._served[0] != release:
            found = read_served(head, self.pair, release)
            self._served = None if found is None else (release, found)
        return None if self._served is None else self._served[1]

    def _load(self, api: Api) -> tuple[Load | None, Reading | None]:
        """What it does, and the reading before this one. Of a busy server that was not read before, two are taken."""
        before, now = self._reading, read_metrics(api, self.clock)
        if now is not None and before is None and now.counters.running + now.counters.waiting:
            self.clock.sleep(RATE_S)
            before, now = now, read_metrics(api, self.clock) or now
        self._reading = now
        return (None if now is None else load_of(before, now)), before

    def _generation(self, api: Api, served: Served, situation: Situation, before: Reading | None) -> Generation:
        """Asked for anew after a while, after every start of a rank, and whenever it did not generate before.

        In between the counters tell: what neither moves nor is asked is as it was.
        """
        ranks = [situation.alive("head"), situation.alive("worker")]
        which = tuple((rank.id, rank.started_at) for rank in ranks if rank is not None)
        if self._asked is not None:
            asked_of, at_s, last = self._asked
            if asked_of == which and self.clock.now() - at_s < ASK_EVERY_S and last.verdict == "generates":
                found = feel_pulse(api, served, before.counters if before else None, canary_s=None)
                return last if found.verdict == "quiet" else found
        # In a thread of its own: it may take a quarter of a minute, and Ctrl-C does not wait for it.
        asked = together({"ask": partial(ask_for_a_token, api, served, self.clock)}, self.clock)["ask"]
        self._asked = which, self.clock.now(), asked
        self._reading = read_metrics(api, self.clock)  # what was generated for this question is no load
        return asked

    def _images(self, hosts: Mapping[str, Host], served: Served) -> dict[str, str | None]:
        """What the tag names on each node now; a node that can't tell is left out."""
        work = {node: partial(host.engine().image_id, served.image) for node, host in hosts.items()}
        found: dict[str, str | None] = {}
        for node, outcome in attempt(work, self.clock).items():
            if isinstance(outcome, BaseException) and not isinstance(outcome, DsparkError):
                raise outcome
            if not isinstance(outcome, BaseException):
                found[node] = outcome
        return found
