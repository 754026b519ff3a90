"""Both ranks while they boot: their logs into one reader, how far they are, and the error that ends the wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import cast

from dspark_deploy.boot.events import BootBegan, Event, Found, Node, PhaseEntered, Resolved, Value
from dspark_deploy.boot.pair import PairReader, Position
from dspark_deploy.boot.rules import Rules, compile_rules
from dspark_deploy.facts.node import Container
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import Task
from dspark_deploy.watch.rank import Heard, RankWatch
from dspark_deploy.watch.verdict import boot_failed

STATE_S = 1.0  # between two looks at a container whose log goes on
SILENT_S = 0.1  # and at one whose log has ended: it is about to be told as dead, or its log broke off
LAST_WORDS_S = 0.25  # from a fatal line to the end of its container
SETTLE_S, SETTLE_TURN_S = 0.5, 0.02
RULES_S = 0.6  # into a wait: what is over before then needs no signature, and compiling them costs as long

Seconds = Mapping[str, Mapping[str, float]]  # node -> phase -> seconds


class BootWatch:
    """One boot of the pair. `turn` is called by whoever waits; the logs are read meanwhile, in threads of their own.

    `load_rules` compiles the signatures: only once a wait lasts. What was heard before is then read again.
    """

    def __init__(self, clock: Clock, load_rules: Callable[[], Rules]) -> None:
        self._clock = clock
        self._load_rules = load_rules
        self._lock = threading.Lock()
        self._reader = PairReader(compile_rules(()), clock.now())
        self._loading: Task[Rules] | None = None
        self._complete = False  # the reader knows the signatures
        self._events: deque[Event] = deque(maxlen=1000)  # not yet told
        self._entered: dict[Node, list[tuple[str, float]]] = {"head": [], "worker": []}
        self._looked_s: dict[str, float] = {}
        self._deaths: dict[str, str] = {}
        self._attached = False
        self.began_s = clock.now()
        self.ranks: dict[str, RankWatch] = {}

    def start(self, host: Host, container: Container, *, marker: str = "", attached: bool = False) -> RankWatch:
        """Watch a rank from its start on, or one that runs already (`attached`)."""
        node = cast(Node, host.name)
        self._attached = self._attached or attached
        watch = RankWatch(
            host, container, self._clock, lambda heard: self._hear(node, heard), marker=marker, attached=attached
        )
        self.ranks[node] = watch
        return watch

    def close(self) -> None:
        """Stop following both logs. No container is touched."""
        for watch in self.ranks.values():
            watch.close()

    def turn(self, waited_s: float) -> None:
        """Judge what has come. Raises LaunchFailed as soon as it is known that this boot won't serve, and why.

        `waited_s` is how long the wait lasts so far.
        """
        now_s = self._clock.now()
        for node, watch in self.ranks.items():
            self._look(cast(Node, node), watch, now_s)
        if not self._complete and (self._deaths or waited_s >= RULES_S):
            self._know_signatures()
        with self._lock:
            verdict = self._reader.verdict(now_s)
            # What a pair has survived before it was looked at is no reason to end it.
            survived = self._attached and self._reader.ready and not self._deaths
        if verdict is not None and not survived:
            self._hear_it_out(verdict.answer.node if verdict.answer else None)
            with self._lock:
                verdict = self._reader.diagnosis()
            raise boot_failed(verdict, self.ranks, self._deaths)

    def settle(self) -> None:
        """Let the last lines of a boot arrive that serves by now: an API may be faster than its log."""
        deadline = self._clock.now() + SETTLE_S
        while "head" in self.ranks and not self._reader.ready and self._clock.now() < deadline:
            self._clock.sleep(SETTLE_TURN_S)

    @property
    def deaths(self) -> Mapping[str, str]:
        """Ranks that have ended, and how."""
        return self._deaths

    def told(self) -> list[Event]:
        """What the logs have said since the last call, in order."""
        events = []
        while self._events:
            events.append(self._events.popleft())
        return events

    def position(self, node: Node) -> Position:
        """How far a rank is."""
        return self._reader.position(node)

    def seconds(self) -> Seconds:
        """How long each phase took that is over, by our clock."""
        with self._lock:
            entered = {node: list(each) for node, each in self._entered.items()}
        return {
            node: {label: round(after - when, 2) for (label, when), (_, after) in pairwise(each)}
            for node, each in entered.items()
            if each
        }

    def figures(self) -> dict[str, Mapping[str, Value]]:
        """Node -> the numbers that its log states."""
        with self._lock:
            ranks = self._reader.diagnosis().ranks
        return {rank.node: rank.figures for rank in ranks if rank.node}

    # --- the logs' threads --------------------------------------------------------------------------------------

    def _hear(self, node: Node, heard: Heard) -> None:
        with self._lock:
            self._feed(node, heard)

    def _feed(self, node: Node, heard: Heard) -> None:
        for event in self._reader.feed(node, heard.line.text.encode() + b"\n", heard.when_s):
            self._events.append(event)
            if isinstance(event, BootBegan):
                self._entered[node].clear()
            elif isinstance(event, PhaseEntered):
                self._entered[node].append((event.phase.label, heard.when_s))

    # --- the waiting thread -------------------------------------------------------------------------------------

    def _look(self, node: Node, watch: RankWatch, now_s: float) -> None:
        since_s = now_s - self._looked_s.get(node, -STATE_S)
        if node in self._deaths or since_s < (SILENT_S if watch.silent else STATE_S):
            return
        self._looked_s[node] = now_s
        death = watch.death()
        if death is not None:
            watch.drain()
            self._deaths[node] = death
            with self._lock:
                self._events.extend(self._reader.ended(node, self._clock.now()))

    def _hear_it_out(self, node: Node | None) -> None:
        """A rank that says why it ends is about to: how it does belongs to the answer, where it is quick."""
        if node is None or node in self._deaths or node not in self.ranks:
            return
        watch = self.ranks[node]
        watch.drain(LAST_WORDS_S)
        deadline = self._clock.now() + LAST_WORDS_S
        while watch.silent and node not in self._deaths and self._clock.now() < deadline:
            self._look(node, watch, self._clock.now())
            self._clock.shielded().sleep(SETTLE_TURN_S)

    def _know_signatures(self) -> None:
        if self._loading is None:
            self._loading = Task(self._load_rules)
        if self._deaths:
            self._loading.wait(self._clock.shielded())
        if not self._loading.done.is_set():
            return
        with self._lock:
            self._reader = self._reread(self._loading.result())
            self._complete = True

    def _reread(self, rules: Rules) -> PairReader:
        """A reader that knows the signatures, with all that was heard so far. Only what they find is news."""
        reader = PairReader(rules, self.began_s)
        heard = ((each.when_s, cast(Node, node), each) for node, rank in self.ranks.items() for each in rank.heard())
        for when_s, node, each in sorted(heard, key=lambda told: told[0]):
            events = reader.feed(node, each.line.text.encode() + b"\n", when_s)
            self._events.extend(event for event in events if isinstance(event, Found | Resolved))
        for dead in self._deaths:
            reader.ended(cast(Node, dead), self._clock.now())
        return reader
