"""A pair in memory for flow tests: two fake hosts, a served API, a clock that does not wait, and who listens."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dspark_deploy.boot.events import Event
from dspark_deploy.errors import Declined, Interrupted
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.intention import Intention, load_intention
from dspark_deploy.flow.record import Record
from dspark_deploy.flow.up import BringUp
from dspark_deploy.flow.wish import Limits, Wish
from dspark_deploy.remote.clock import Clock
from dspark_deploy.watch.progress import BootProgress
from tests.fakes import FakeHost
from tests.samples import node_facts

MARKER = "world_size=2 rank=1 local_rank=0 distributed_init_method=tcp://192.168.177.11:25000 backend=nccl"
MODEL = "deepseek-v4-flash-0731"
INVENTORY = """\
name: spark-pair
profile: agent-1m
head: {host: spark-head}
worker: {host: spark-worker}
"""


class FakeClock:
    """Time that passes when something sleeps. `interrupt_after` sleeps end as a Ctrl-C would."""

    def __init__(self, interrupt_at: float | None = None) -> None:
        self._now = 0.0
        self._interrupt_at = interrupt_at

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        threading.Event().wait(0.001)  # the thread that follows a log has its turn
        if self._interrupt_at is not None and self._now >= self._interrupt_at:
            raise Interrupted("interrupted by SIGINT", remedy="run it again")

    def interrupt(self) -> None:
        """As a Ctrl-C would, from another thread: the next sleep ends by it."""
        self._interrupt_at = 0.0

    def shielded(self) -> Clock:
        clock = FakeClock()
        clock._now = self._now
        return clock


@dataclass
class FakeObserver:
    """Everything that was told."""

    steps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    progresses: list[BootProgress] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def begin(self, total: int) -> None: ...

    def started(self, step: str) -> None:
        self.steps.append(step)

    def finished(self, detail: str = "") -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, boot: BootProgress) -> None:
        self.progresses.append(boot)

    def event(self, event: Event) -> None:
        self.events.append(event)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class Stand:
    """Two healthy nodes, nothing running; `up` starts ranks that behave unless a test says otherwise."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "inventory.yaml").write_text(INVENTORY)
        self.head, self.worker = FakeHost(node_facts("head")), FakeHost(node_facts("worker"))
        self.hosts = {"head": self.head, "worker": self.worker}
        self.observer = FakeObserver()
        self.asked: list[str] = []
        self.agrees = True
        self.online = False
        self.order: list[str] = []  # nodes, as their containers started
        self.max_model_len = 1048576
        self.worker.on_start = self.start_worker
        self.head.on_start = self.start_head

    def start_worker(self, host: FakeHost, container: Container) -> None:
        """The worker reaches the rendezvous at once."""
        self.order.append("worker")
        host.engine_.say(container.id, "INFO starting", MARKER)

    def start_head(self, host: FakeHost, container: Container) -> None:
        """The head serves at once."""
        self.order.append("head")
        host.engine_.say(container.id, "INFO Application startup complete.")
        host.api = self.answer

    def answer(self, method: str, path: str, _body: Any) -> tuple[int, Any]:
        """The served API."""
        if (method, path) == ("GET", "/v1/models"):
            return 200, {"data": [{"id": MODEL, "max_model_len": self.max_model_len}]}
        message = {"role": "assistant", "content": "42"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": {"completion_tokens": 1}}

    def intention(self, profile: str | None = None) -> Intention:
        """What the inventory means."""
        wish = Wish(profile=profile, directory=self.folder, home=self.folder, inventory=Path("inventory.yaml"))
        return load_intention(replace(wish, online=self.online))

    def bring_up(
        self, profile: str | None = None, *, clock: FakeClock | None = None, limits: Limits | None = None
    ) -> BringUp:
        """One `up`, not yet begun."""
        return BringUp(
            intention=self.intention(profile),
            limits=limits or Limits(api_s=60, rendezvous_s=20),
            observer=self.observer,
            clock=clock or FakeClock(),
            confirm=self._confirm,
            hosts=self.hosts,
            record=Record(self.folder / "state", "spark-pair", "up", self.observer.warn),
        )

    def running(self) -> dict[str, list[str]]:
        """The releases of each node's containers."""
        return {
            node: [container.labels["dspark.release"] for container in host.engine_.kept.values()]
            for node, host in self.hosts.items()
        }

    def _confirm(self, text: str) -> None:
        self.asked.append(text)
        if not self.agrees:
            raise Declined("declined", remedy="say yes")
