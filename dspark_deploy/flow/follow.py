"""`logs -f`: both ranks' lines as they come, across the ends and restarts of their containers."""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias

from dspark_deploy.errors import DsparkError, NodeUnreachable
from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.facts.stamps import SECOND, nanoseconds
from dspark_deploy.flow.pair import OpenHosts
from dspark_deploy.flow.ranklines import LogQuery, RankLine, Source, newest, said, source_of
from dspark_deploy.plan.situation import ALIVE
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Logs

HOLD_S = 0.2  # for so long a line waits for an older one of the other rank
TURN_S = 0.1
LOOK_S = 1.0  # between two looks for a new rank, or tries to reach a node again
MARGIN_S = 1.0  # of lines that are asked for again, where a log broke off


@dataclass(frozen=True, slots=True)
class _Runs:
    """Whether a node's rank runs now."""

    node: str
    runs: bool


_News: TypeAlias = "RankLine | _Runs | BaseException"


def follow_logs(
    hosts: OpenHosts, pair: str, sources: Mapping[str, Source], query: LogQuery, clock: Clock
) -> Iterator[RankLine]:
    """Every asked rank's lines. A rank that ends is told in a line of its own, and its successor is followed.

    Ends once no asked rank has run for `query.new_rank_s`.
    """
    news: queue.SimpleQueue[_News] = queue.SimpleQueue()
    followers = [_Follower(node, hosts, pair, query, sources.get(node), news.put) for node in query.nodes]
    for follower in followers:
        threading.Thread(target=follower.run, daemon=True).start()
    try:
        yield from _in_order(_until_none_runs(news, query, clock))
    finally:
        for follower in followers:
            follower.close()


def _until_none_runs(news: queue.SimpleQueue[_News], query: LogQuery, clock: Clock) -> Iterator[RankLine | None]:
    """The lines as they come; None now and then while there are none."""
    running = dict.fromkeys(query.nodes, True)  # until the first look says otherwise
    none_since: float | None = None
    while none_since is None or clock.now() - none_since < query.new_rank_s:
        clock.sleep(0)
        try:
            told = news.get(timeout=TURN_S)
        except queue.Empty:
            yield None
            continue
        match told:
            case RankLine():
                yield told
            case _Runs():
                yield None
                running[told.node] = told.runs
                if any(running.values()):
                    none_since = None
                elif none_since is None:
                    none_since = clock.now()
                    yield said(told.node, f"no rank runs any more: waiting {query.new_rank_s:g} s for a new one")
            case _:
                raise told


def _in_order(lines: Iterator[RankLine | None]) -> Iterator[RankLine]:
    """Both ranks' lines in the order of their times, as far as they come within HOLD_S of each other."""
    held: list[tuple[str, int, float, RankLine]] = []
    numbers = count()
    for line in lines:
        now = time.monotonic()
        if line is not None:
            heapq.heappush(held, (line.at, next(numbers), now + HOLD_S, line))
        while held and held[0][2] <= now:
            yield heapq.heappop(held)[3]
    while held:
        yield heapq.heappop(held)[3]


@dataclass
class _Follower:
    """One node's rank, whichever container it runs in; in a thread of its own."""

    node: str
    hosts: OpenHosts
    pair: str
    query: LogQuery
    source: Source | None  # as it was found before; None: there was none, or the node could not be reached
    tell: Callable[[_News], None]
    _closed: threading.Event = field(default_factory=threading.Event)
    _logs: Logs | None = None
    _last_at: str = ""  # of the container that is followed
    _lost: bool = False  # the node could not be asked when it was asked last

    def run(self) -> None:
        try:
            source = self.source
            if source is not None:
                source = self._follow(source, since_s=self.query.since_s, tail=self.query.tail)
            while not self._closed.is_set():
                source = self._next(source)
        except BaseException as error:  # noqa: BLE001  carried to the thread that shows the lines, and raised there
            self.tell(error)

    def close(self) -> None:
        """End it, from another thread."""
        self._closed.set()
        if self._logs is not None:
            self._logs.close()

    def _next(self, last: Source | None) -> Source | None:
        """Look for a rank that runs, and follow it to its end. Returns the one that was followed last."""
        self._closed.wait(LOOK_S)
        found = self._look()
        if found is None:
            self.tell(_Runs(self.node, runs=False))
            return last
        self.tell(_Runs(self.node, runs=True))
        if last is None or last.container.id != found.container.id:
            release = found.container.labels.get(labels.RELEASE, "unknown")
            self.tell(said(self.node, f"a new rank runs in {found.container.name}, release {release}", _began(found)))
            self._last_at = ""
            return self._follow(found, since_s=None, tail=None)
        if last.container.started_at != found.container.started_at:
            self.tell(said(self.node, f"{found.container.name} was started again", _began(found)))
        return self._follow(found, since_s=self._since(found), tail=None)

    def _look(self) -> Source | None:
        """What runs there now, if anything; None also where the node can't be asked, which is told once."""
        try:
            if self._lost or self.node not in self.hosts:
                self.hosts.renew(self.node)
            engine = self.hosts[self.node].engine()
            container = newest(engine.containers(self.pair))
            alive = container is not None and container.state in ALIVE
            found = source_of(self.node, engine, container) if alive else None
        except DsparkError as error:
            self._lose(error)
            return None
        if self._lost:
            self.tell(said(self.node, "the node answers again"))
            self._lost = False
        return found

    def _lose(self, error: DsparkError) -> None:
        if not self._lost:
            self.tell(said(self.node, f"not followed for now: {error.message}"))
        self._lost = self._lost or isinstance(error, NodeUnreachable) or self.node not in self.hosts

    def _follow(self, source: Source, *, since_s: float | None, tail: int | None) -> Source:
        """Every line to the end of the log, and how it ended."""
        try:
            engine = self.hosts[self.node].engine()
            self._logs = engine.logs(source.container.id, follow=True, since_s=since_s, tail=tail)
            for line in self._logs:
                if line.at > self._last_at:
                    self._last_at = line.at
                    self.tell(source.mark(line))
            if self._closed.is_set():
                return source
            return self._ended(source, engine.inspect(source.container.id))
        except DsparkError as error:
            self._lose(error)
            return source

    def _ended(self, source: Source, now: Container | None) -> Source:
        """Tell how a rank ended whose log has ended."""
        if now is None:
            self.tell(said(self.node, f"the rank ended: {source.container.name} was removed"))
        elif now.state not in ALIVE:
            killed = ", killed for lack of memory" if now.oom_killed else ""
            how = f"the rank ended: {now.name} is {now.state}, exit code {now.exit_code}{killed}"
            self.tell(said(self.node, how, source.here(now.finished_at) if now.finished_at else None))
        else:
            return source  # the log broke off, or it runs again already
        self.tell(_Runs(self.node, runs=False))
        return replace(source, container=now or source.container)

    def _since(self, source: Source) -> float | None:
        """How long ago, by the node's clock, the last line came that was shown."""
        if not self._last_at:
            return None
        node_now_s = time.time() + source.skew_s
        return max(0.0, node_now_s - nanoseconds(self._last_at) / SECOND) + MARGIN_S


def _began(source: Source) -> str | None:
    return source.here(source.container.started_at) if source.container.started_at else None
