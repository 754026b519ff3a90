"""Both nodes for as long as they are supervised: what breaks off is opened again, and their engines are listened to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from dspark_deploy.errors import DsparkError, NodeUnreachable, StepFailed
from dspark_deploy.flow.pair import OpenHosts
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.watch.events import EventWatch
from dspark_deploy.watch.gather import probe

TOLD = ("die", "oom")  # events that are worth a line of their own

Tell = Callable[[str, str], None]
"""What happened: one word for its kind, and a sentence."""


class Contact:
    """The connections. `woke` is set when something happens on a node: then it is time to look."""

    def __init__(self, hosts: OpenHosts, pair: str, clock: Clock, tell: Tell, *, every_s: float) -> None:
        """An engine that can't be listened to is tried again each `every_s`."""
        self._hosts = hosts
        self._pair = pair
        self._clock = clock
        self._tell = tell
        self._every_s = every_s
        self._broken: set[str] = set()
        self._boots: dict[str, str | None] = {}
        self._events: dict[str, EventWatch] = {}
        self._again_at: dict[str, float] = {}
        self.rebooted: set[str] = set()  # nodes that were started anew since this set was emptied
        self.woke = threading.Event()

    def open(self) -> tuple[Mapping[str, Host], dict[str, str]]:
        """The nodes that can be asked now, and why the others can't."""
        why: dict[str, str] = {}
        for node in HEAD_FIRST:
            try:
                self._reach(node)
                self._listen(node)
            except (NodeUnreachable, StepFailed) as error:
                self.broke(error, node)
                why[node] = error.message
        return {node: host for node, host in self._hosts.items() if node not in why}, why

    def broke(self, error: DsparkError, node: str) -> None:
        """Something could not be asked of `node`: a connection that is gone is opened anew at the next look."""
        if isinstance(error, NodeUnreachable):
            self._broken.add(node)

    def tell_events(self) -> None:
        """Say what has happened since this was asked last."""
        for node, watch in self._events.items():
            for event in watch.arrived():
                if event.action in TOLD:
                    code = "" if event.exit_code is None else f", exit code {event.exit_code}"
                    self._tell("event", f"{node}: {event.action} of {event.name}{code}")

    def hush(self) -> None:
        """Pass over what has happened: it was this run's own doing."""
        for watch in self._events.values():
            watch.arrived()

    def close(self) -> None:
        """Stop listening. The connections are their opener's."""
        for watch in self._events.values():
            watch.close()

    def _reach(self, node: str) -> None:
        if node in self._hosts and node not in self._broken and node in self._boots:
            return
        if node not in self._hosts or node in self._broken:
            self._hosts.renew(node)
            self._broken.discard(node)
        boot = probe(self._hosts[node], self._pair, images=(), paths=(), ports=()).boot_id
        before = self._boots.get(node)
        if node in self._boots:
            self._tell("event", f"{node}: answers again")
        if before is not None and boot != before:
            self.rebooted.add(node)
            self._tell("event", f"{node}: was started anew: another boot than before")
        self._boots[node] = boot

    def _listen(self, node: str) -> None:
        watch, now = self._events.get(node), self._clock.now()
        if (watch is not None and not watch.ended) or now < self._again_at.get(node, now):
            return
        self._again_at[node] = now + self._every_s
        self._events[node] = EventWatch(self._hosts[node], self._pair, self.woke)
