"""What is done on the nodes, numbered: programs, requests to the engine, uses of the API. One can be held."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import paramiko

HOLD_S = 60.0  # whoever holds a step lets it go long before
PROGRAM = re.compile(rb",'(\w+)','exec'\),\{'__name__':'__main__'\}\)")
COMPOSE = re.compile(rb'"argv": \["docker", "compose"')
MARKER = re.compile(rb"dspark-[0-9a-f]{32} \{")
ENGINE_STEPS = (  # what changes something, and the log that is followed
    (re.compile(r"POST .*/containers/[0-9a-f]+/stop"), "engine stop"),
    (re.compile(r"DELETE .*/containers/[0-9a-f]+"), "engine remove"),
    (re.compile(r"POST .*/containers/create"), "engine create"),
    (re.compile(r"GET .*/containers/[0-9a-f]+/logs"), "engine logs"),
    (re.compile(r"GET .*/version"), "engine version"),
)


class Steps:
    """What was done on both nodes, in order. The same again on the same node, a wait's look for example, is one."""

    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._go_on = threading.Event()
        self.begin(None)

    def begin(self, held: tuple[str, str, int] | None) -> None:
        """Count anew. `held`: node, step and its how-manieth on that node is where to wait."""
        self._go_on.set()
        with self._lock:
            self._held = held
            self._counts: Counter[tuple[str, str]] = Counter()
            self._last: dict[str, str] = {}
            self.done: list[tuple[str, str, int]] = []
        self._go_on = threading.Event()

    def let_go(self) -> None:
        """Whoever is held goes on."""
        self._go_on.set()

    def ended(self, where: str, step: str) -> None:
        """A step has ended, and its answer is not on its way yet."""
        go_on = self._go_on
        with self._lock:
            if self._last.get(where) == step:
                return
            self._last[where] = step
            self._counts[where, step] += 1
            point = (where, step, self._counts[where, step])
            self.done.append(point)
            met = point == self._held
        if met:
            self._say({"met": point})
            go_on.wait(HOLD_S)


class SpiedChannel:
    """A command's channel that knows which program runs over it, and says when its first answer is there."""

    def __init__(self, channel: paramiko.Channel, ended: Callable[[str], None]) -> None:
        self._channel = channel
        self._ended = ended
        self._seen = b""
        self._name = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def recv(self, size: int) -> bytes:
        """See Channel."""
        data = self._channel.recv(size)
        if not self._name:
            self._seen += data
            if found := PROGRAM.search(self._seen):
                self._name = found[1].decode()
        elif self._name == "run":
            self._seen += data
        return data

    def sendall(self, data: bytes) -> None:
        """See Channel."""
        if self._name and MARKER.search(data):
            name, self._name = self._name, ""
            self._ended("compose" if name == "run" and COMPOSE.search(self._seen) else name)
        self._channel.sendall(data)
