"""One look after another at a pair under supervision: its ranks, what is meant to serve, the pulse of its API."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from dspark_deploy.errors import DsparkError, KeyRefused, NodeUnreachable, StepFailed
from dspark_deploy.execute.journal import read_journals
from dspark_deploy.facts.metrics import Counters
from dspark_deploy.facts.pulse import Pulse, moved, parse_pulse
from dspark_deploy.flow.contact import Contact
from dspark_deploy.flow.releases import read_served
from dspark_deploy.plan.journal import Journal, unconfirmed
from dspark_deploy.plan.served import Served
from dspark_deploy.plan.situation import Situation, sort_containers
from dspark_deploy.plan.supervised import meant_to_serve, past_restarts
from dspark_deploy.plan.supervision import Policy, Seen, Sign, Watched
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import together
from dspark_deploy.remote.served import ServedApi
from dspark_deploy.watch.gather import look_at_each
from dspark_deploy.watch.generation import MOVES_S, Generation, feel_pulse, last_work, read_counters

PULSE_S = 15.0  # of one answer
CANARY_S = 60.0  # that one token may take: the first after a start compiles kernels


@dataclass
class Oversight:
    """What one look leaves to the next."""

    pair: str
    contact: Contact
    policy: Policy
    clock: Clock
    _sight: Situation | None = None
    _journals: dict[str, Journal] = field(default_factory=dict)
    _served: dict[str, Served | None] = field(default_factory=dict)  # by release
    _counters: Counters | None = None
    _asked_at: float | None = None  # when a token was asked for last
    _doings: tuple[dict[str, tuple[str, Pulse]], float] = ({}, 0.0)  # of ranks that boot, and when that was

    def look(self, watched: Watched) -> Seen:
        """The pair as it is now; `watched` is what is remembered of it."""
        hosts, silent = self.contact.open()
        found = look_at_each(hosts, self.pair, self.clock)
        self.contact.tell_events()
        for node, outcome in found.items():
            if isinstance(outcome, DsparkError):
                self.contact.broke(outcome, node)
                silent[node] = outcome.message
        told = {node: each for node, each in found.items() if not isinstance(each, DsparkError)}
        situation = sort_containers(self.pair, told)
        if not silent:
            try:
                return self._whole(hosts, situation, watched)
            except (NodeUnreachable, StepFailed, KeyRefused) as error:
                node = error.node or "head"
                self.contact.broke(error, node)
                silent[node] = error.message
        return Seen(self.clock.now(), situation, meant_to_serve(self._journals.values()), silent=silent)

    def forget(self) -> None:
        """Something was changed: the next look reads everything anew."""
        self._sight = None

    def _whole(self, hosts: Mapping[str, Host], situation: Situation, watched: Watched) -> Seen:
        if situation != self._sight or watched.trouble_at is not None or not watched.generated:
            self._journals = read_journals(hosts, self.pair, self.clock)
        if situation != self._sight:
            self._sight, self._counters = situation, None
        journals = self._journals.values()
        meant = meant_to_serve(journals)
        release = situation.release
        sign = None
        if release is not None and release == meant.release:
            sign = self._still_works(hosts, situation, self._feel(hosts["head"], release, watched), watched)
        return Seen(
            now=self.clock.now(),
            situation=situation,
            meant=meant,
            past=past_restarts(journals, datetime.now(UTC), self.policy.window_s),
            owed=tuple(sorted(unconfirmed(journals))),
            rebooted=tuple(sorted(self.contact.rebooted)),
            sign=sign,
            works=sign is not None and sign.verdict == "no-api" and self._works(hosts, situation),
        )

    def _feel(self, head: Host, release: str, watched: Watched) -> Sign:
        if release not in self._served:
            self._served[release] = read_served(head, self.pair, release)
        served = self._served[release]
        if served is None:
            return Sign("no-api", f"the head keeps no readable manifest of release {release}")
        found = together({"pulse": partial(self._ask, head, served, watched)}, self.clock)["pulse"]
        if found.verdict == "locked":  # it may serve well: a restart would mend nothing
            raise KeyRefused(found.detail, remedy="start `dspark supervise` with the key that the pair is served with")
        self._counters = found.counters
        return Sign(found.verdict, found.detail, found.busy)

    def _ask(self, head: Host, served: Served, watched: Watched) -> Generation:
        """In a thread of its own: it may take as long as one token may."""
        with ServedApi(head, served.endpoint.probe_address, served.endpoint.port) as api:
            before = self._counters
            if before is None and (before := read_counters(api)) is not None and (before.running or before.waiting):
                self.clock.shielded().sleep(MOVES_S)
            asks = watched.trouble_at is not None or not watched.generated or self._is_due()
            limit_s = min(CANARY_S, self.policy.wedge_s) if asks else None
            found = feel_pulse(api, served, before, canary_s=limit_s)
        if asks and not found.busy:
            self._asked_at = self.clock.now()
        return found

    def _is_due(self) -> bool:
        return self._asked_at is None or self.clock.now() - self._asked_at >= self.policy.canary_s

    def _still_works(self, hosts: Mapping[str, Host], situation: Situation, sign: Sign, watched: Watched) -> Sign:
        """Before it is called a wedge: has either rank printed anything about work meanwhile, a compilation say?"""
        if sign.verdict not in {"quiet", "silent"} or self.clock.now() - watched.moved_at < self.policy.wedge_s:
            return sign
        for node, host in hosts.items():
            rank = situation.alive(node)
            if rank is not None and (line := last_work(host, rank.id, since_s=self.policy.wedge_s)):
                return Sign("generates", f"the {node} works: {line[:120]}", busy=True)
        return sign

    def _works(self, hosts: Mapping[str, Host], situation: Situation) -> bool:
        """Whether a rank that boots has done anything since this was asked last: printed, computed, compiled."""
        ranks = {node: rank for node in hosts if (rank := situation.alive(node)) is not None}
        at = self.clock.now()
        work = {node: partial(_doings, hosts[node], rank.id) for node, rank in ranks.items()}
        now = together(work, self.clock)
        before, since = self._doings
        self._doings = now, at
        return before.keys() != now.keys() or any(
            line != before[node][0] or moved(before[node][1], pulse, at - since) for node, (line, pulse) in now.items()
        )


def _doings(host: Host, container_id: str) -> tuple[str, Pulse]:
    """The rank's last line, and what its processes have used and made."""
    with closing(host.engine().logs(container_id, tail=1)) as lines:
        last = next((f"{container_id} {line.at}" for line in lines), container_id)
    return last, parse_pulse(host.call("pulse", {"container": container_id}, timeout_s=PULSE_S))
