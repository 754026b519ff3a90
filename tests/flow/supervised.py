"""A pair in memory that serves and is supervised: its API with counters, its clock, and what was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dspark_deploy.errors import Interrupted, NodeUnreachable
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.pair import OpenHosts
from dspark_deploy.flow.supervise import Said, Supervisor
from dspark_deploy.flow.wish import Limits
from dspark_deploy.plan.supervision import Policy
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock, Stand

POLICY = Policy(backoff_s=30.0, wedge_s=60.0, canary_s=50.0)
PAIR = "spark-pair"


@dataclass
class Server:
    """The API of a pair that serves, with its counters."""

    stand: Stand
    prompt_tokens: int = 10
    generated: int = 10
    running: int = 0
    used: float = 0.0  # share of the KV pool
    canaries: int = 0
    status: int = 200  # of what it is asked to generate
    each_reading: Callable[[Server], None] = lambda _server: None

    def __call__(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/metrics":
            self.each_reading(self)
            return 200, (
                f"vllm:prompt_tokens_total {self.prompt_tokens}\nvllm:generation_tokens_total {self.generated}\n"
                f"vllm:num_requests_running {self.running}\nvllm:kv_cache_usage_perc {self.used}\n"
            )
        if path == "/v1/completions":
            self.canaries += 1
            if self.status != 200:
                return self.status, "the engine is gone"
            self.generated += 1
        return self.stand.answer(method, path, body)


@dataclass
class Watch:
    """A pair that serves, and whoever supervises it."""

    stand: Stand
    clock: FakeClock
    said: list[Said] = field(default_factory=list)
    policy: Policy = POLICY
    unreachable: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.release = self.stand.bring_up().up().release
        self.server = Server(self.stand)
        self.serve(self.stand.head)
        self.stand.head.on_start = self._head_starts
        self.stand.order.clear()
        self.before = {node: len(host.done) for node, host in self.stand.hosts.items()}

    def serve(self, head: FakeHost) -> None:
        head.api = self.server

    def _head_starts(self, host: FakeHost, container: Container) -> None:
        self.stand.start_head(host, container)
        self.serve(host)

    def supervisor(self) -> Supervisor:
        hosts = OpenHosts(self._open)
        hosts.update({node: host for node, host in self.stand.hosts.items() if node not in self.unreachable})
        home, limits = self.stand.folder / "state", Limits(api_s=60, rendezvous_s=20)
        return Supervisor(PAIR, hosts, self.policy, limits, self.said.append, self.clock, home, 5.0)

    def _open(self, node: str) -> FakeHost:
        if node in self.unreachable:
            raise NodeUnreachable(f"{node}: no answer on port 22 in 10 s", remedy="wait", node=node)
        return self.stand.hosts[node]

    def kinds(self) -> list[str]:
        return [said.kind for said in self.said if said.kind not in {"step", "event"}]

    def texts(self, kind: str) -> list[str]:
        return [said.text for said in self.said if said.kind == kind]

    def rank(self, node: str) -> Container:
        (container,) = self.stand.hosts[node].engine_.kept.values()
        return container

    def prints_only(self, *lines: str) -> None:
        """What both ranks have printed, instead of what they have: a fake's lines have no age."""
        for node, host in self.stand.hosts.items():
            host.engine_._lines[self.rank(node).id].clear()
            host.engine_.say(self.rank(node).id, *lines)

    def kill(self, node: str, **how: Any) -> None:
        self.stand.hosts[node].engine_.die(self.rank(node).id, 137, **how)


class QuickClock(FakeClock):
    """One that gives no other thread its turn: nothing is followed while a pair is only looked at."""

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        if self._interrupt_at is not None and self._now >= self._interrupt_at:
            raise Interrupted("interrupted by SIGTERM", remedy="run it again")
