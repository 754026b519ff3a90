"""Both ranks' logs while they come in: how far each is, and when there is enough to end the wait.

A cause ends it at once. A symptom or an echo only says that something went wrong elsewhere, and what did may still be
on its way from the other node: it ends the wait a moment later, with whatever has arrived by then.
"""

from __future__ import annotations

from dataclasses import dataclass

from dspark_deploy.boot.diagnosis import Diagnosis, diagnose
from dspark_deploy.boot.events import BootBegan, Event, Found, Node, PhaseEntered, Progress, Resolved
from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.reader import BootReader
from dspark_deploy.boot.rules import Rules

GRACE_S = 0.7  # for the other rank's cause; a fatal line is to be reported within a second


@dataclass(slots=True)
class Position:
    """How far a rank is. Times are the caller's clock, since a node's own may be another."""

    phase: Phase | None
    since_s: float  # when it entered the phase
    heard_s: float  # when its log last moved
    percent: int | None = None  # of the phase's progress bar
    ready: bool = False


class PairReader:
    """One reader a rank, and one judgement over both. Pure: bytes and the time go in."""

    def __init__(self, rules: Rules, now_s: float) -> None:
        self._rules = rules
        self._readers: dict[Node, BootReader] = {node: BootReader(rules, node) for node in ("head", "worker")}
        self._positions: dict[Node, Position] = {node: Position(None, now_s, now_s) for node in ("head", "worker")}
        self._fatal: dict[tuple[Node | None, str], float] = {}  # when each was told
        self._ended_s: float | None = None

    def feed(self, node: Node, data: bytes, now_s: float) -> list[Event]:
        """Take more of one rank's log. Returns what it says, for whoever shows progress or keeps a record."""
        events = self._readers[node].feed(data)
        position = self._positions[node]
        position.heard_s = now_s
        for event in events:
            self._note(event, position, now_s)
        return events

    def ended(self, node: Node, now_s: float) -> list[Event]:
        """The rank's container died or was started again: its last line counts, and the wait is over after a moment."""
        self._ended_s = now_s if self._ended_s is None else self._ended_s
        return self._readers[node].finish()

    def position(self, node: Node) -> Position:
        """How far a rank is."""
        return self._positions[node]

    @property
    def ready(self) -> bool:
        """Whether the head serves."""
        return self._positions["head"].ready

    def verdict(self, now_s: float) -> Diagnosis | None:
        """The diagnosis to end the wait with, or None to wait on."""
        if any(self._rules.signatures[name].role == "cause" for _, name in self._fatal):
            return self.diagnosis()
        told_s = min((*self._fatal.values(), *([self._ended_s] if self._ended_s is not None else [])), default=None)
        return self.diagnosis() if told_s is not None and now_s >= told_s + GRACE_S else None

    def diagnosis(self) -> Diagnosis:
        """What both logs say so far."""
        boots = [boot for reader in self._readers.values() for boot in reader.boots]
        return diagnose(boots, self._rules.signatures)

    def _note(self, event: Event, position: Position, now_s: float) -> None:
        match event:
            case PhaseEntered():
                position.phase, position.since_s, position.percent = event.phase, now_s, None
                last = Phase.READY if event.node == "head" else Phase.ENGINE_READY
                position.ready = event.phase >= last
            case Progress():
                position.percent = event.percent
            case BootBegan():
                position.phase, position.since_s, position.percent, position.ready = None, now_s, None, False
            case Found(severity="fatal"):
                self._fatal.setdefault((event.node, event.signature), now_s)
            case Resolved():
                self._fatal.pop((event.node, event.signature), None)
            case _:
                pass
