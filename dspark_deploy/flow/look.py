"""Look at a pair closely, once or often: both nodes at once, and one that is gone hides nothing of the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dspark_deploy.boot.diagnosis import Diagnosis, diagnose
from dspark_deploy.boot.rules import Rules
from dspark_deploy.errors import DsparkError, NodeUnreachable
from dspark_deploy.execute.journal import try_journals
from dspark_deploy.facts.node import Container
from dspark_deploy.facts.patches import PatchOutcome
from dspark_deploy.facts.recall import Recalled, parse_recalled
from dspark_deploy.flow.pair import Reached
from dspark_deploy.plan.journal import Journal
from dspark_deploy.plan.situation import Situation, sort_containers
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt, beside
from dspark_deploy.watch.costly import RankLog
from dspark_deploy.watch.gather import look_at_each
from dspark_deploy.watch.skew import measure_skew

NODES = ("head", "worker")
RECALL_S = 20.0  # the program asks a driver, which may hang, and ends itself well before
RECALL_EVERY_S = 30.0  # it runs a command in the rank's container


@dataclass(frozen=True, slots=True)
class Seen:
    """What both nodes tell. `silent` are those whose containers are not known, with the reason."""

    situation: Situation
    silent: Mapping[str, DsparkError]
    journals: tuple[Journal, ...]  # of the nodes that tell one
    recalled: Mapping[str, Recalled] = field(default_factory=dict)
    skew_s: Mapping[str, float] = field(default_factory=dict)  # node -> its clock less this machine's
    diagnosis: Diagnosis | None = None  # of what the ranks that run have printed
    patches: Mapping[str, tuple[PatchOutcome, ...]] = field(default_factory=dict)  # of ranks that run
    busy_at: str | None = None  # the last line of the head's log that tells of tokens
    untold: Mapping[str, str] = field(default_factory=dict)  # what could not be read -> why


@dataclass(frozen=True, slots=True)
class _Known:
    """What a node was asked that changes seldom and takes its time."""

    rank: tuple[str, str | None] | None  # of which run of its rank
    at_s: float
    recalled: Recalled
    skew_s: float


class PairLook:
    """Both nodes' connections, and what is worth keeping from one look to the next."""

    def __init__(self, pair: str, reached: Reached, rules: Rules, clock: Clock) -> None:
        self.pair = pair
        self.hosts = reached.hosts
        self._rules = rules
        self._clock = clock
        self._gone: dict[str, NodeUnreachable] = dict(reached.unreachable)
        self._logs: dict[str, RankLog] = {}
        self._known: dict[str, _Known] = {}

    def look(self) -> Seen:
        """The pair now. A node that was lost is one that could not be reached: see `reopen`."""
        hosts = self._here()
        ranks, journals = beside(
            partial(look_at_each, hosts, self.pair, self._clock),
            partial(try_journals, hosts, self.pair, self._clock),
            self._clock,
        )
        silent: dict[str, DsparkError] = dict(self._gone)
        containers: dict[str, tuple[Container, ...]] = {}
        for node, outcome in ranks.items():
            if isinstance(outcome, DsparkError):
                silent[node] = outcome
                self._note_lost(node, outcome)
            else:
                containers[node] = outcome
        situation = sort_containers(self.pair, containers)
        return self._closely(situation, silent, tuple(journals.values()))

    def reopen(self) -> None:
        """Try the nodes again that are gone. Where that fails, the new reason stands for the old one."""
        work = {node: partial(self.hosts.renew, node) for node in self._gone}
        for node, outcome in attempt(work, self._clock).items() if work else ():
            if outcome is None:
                del self._gone[node]
            elif isinstance(outcome, NodeUnreachable):
                self._gone[node] = outcome
            else:
                raise outcome

    def _here(self) -> dict[str, Host]:
        return {node: host for node, host in self.hosts.items() if node not in self._gone}

    def _note_lost(self, node: str, error: DsparkError) -> None:
        if isinstance(error, NodeUnreachable):
            self._gone[node] = error

    def _closely(self, situation: Situation, silent: Mapping[str, DsparkError], journals: tuple[Journal, ...]) -> Seen:
        """What the nodes remember, and what the ranks that run have printed. What of it can't be read is told."""
        untold = self._ask({node: host for node, host in self._here().items() if node not in silent}, situation)
        running = {node: log for node, log in self._logs.items() if situation.alive(node) is not None}
        boots = [boot for node in NODES if node in running for boot in running[node].boots]
        return Seen(
            situation=situation,
            silent=silent,
            journals=journals,
            recalled={node: known.recalled for node, known in self._known.items() if node in situation.own},
            skew_s={node: known.skew_s for node, known in self._known.items()},
            diagnosis=diagnose(boots, self._rules.signatures) if boots else None,
            patches={node: log.patches for node, log in running.items() if log.patches},
            busy_at=self._logs["head"].busy_at if "head" in self._logs else None,
            untold=untold,
        )

    def _ask(self, hosts: Mapping[str, Host], situation: Situation) -> dict[str, str]:
        """Have it known what is not known yet, or not any more. Returns what could not be read, and why."""
        work: dict[str, Callable[[], Any]] = {}
        for node, host in hosts.items():
            alive = situation.alive(node)
            if self._is_old(node, alive):
                work[f"what the {node} remembers"] = partial(self._recall, host, alive)
            if alive is not None:
                work[f"the log of the {node}"] = partial(self._log_of(node, alive).read, host.engine(), self._clock)
        untold: dict[str, str] = {}
        for what, outcome in attempt(work, self._clock).items() if work else ():
            if isinstance(outcome, DsparkError):
                untold[what] = outcome.message
            elif isinstance(outcome, BaseException):
                raise outcome
        return untold

    def _is_old(self, node: str, alive: Container | None) -> bool:
        known = self._known.get(node)
        return known is None or known.rank != _rank(alive) or self._clock.now() - known.at_s >= RECALL_EVERY_S

    def _recall(self, host: Host, alive: Container | None) -> None:
        self._known.pop(host.name, None)
        request = {"pair": self.pair, "container": None if alive is None else alive.id}
        recalled = parse_recalled(host.call("recall", request, timeout_s=RECALL_S))
        skew_s = measure_skew(host.engine())
        self._known[host.name] = _Known(_rank(alive), self._clock.now(), recalled, skew_s)

    def _log_of(self, node: str, alive: Container) -> RankLog:
        """The rank's log; another container's is read anew."""
        known = self._logs.get(node)
        if known is None or _rank(known.container) != _rank(alive):
            self._logs[node] = known = RankLog(node, alive, self._rules)
        return known


def _rank(alive: Container | None) -> tuple[str, str | None] | None:
    """What tells one run of a rank from another."""
    return None if alive is None else (alive.id, alive.started_at)
