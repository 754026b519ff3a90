"""`logs`: what both ranks printed, merged on time, each line with the node it comes from."""

from __future__ import annotations

import heapq
import queue
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dspark_deploy.errors import DsparkError, NotAsWanted
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.pair import reach_pair
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.plan.situation import ALIVE
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host, LogLine

TURN_S = 0.1


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines. `since_s` counts back from each node's own now, so that clocks need not agree."""

    nodes: tuple[str, ...] = HEAD_FIRST
    follow: bool = False
    since_s: float | None = None
    tail: int | None = None  # lines of each rank; None: all
    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class RankLine:
    """One line and where it comes from. `at` is RFC 3339, by the node's clock."""

    node: str
    at: str
    text: str


def read_logs(wish: Wish, query: LogQuery, clock: Clock) -> Iterator[RankLine]:
    """The lines, oldest first; with `follow` as they come, until both ranks end.

    Raises NotAsWanted where no asked rank has a container. A node that can't be reached is an error only when its
    rank was asked for by name; else it is told as a line of its own.
    """
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        for node, error in reached.unreachable.items():
            if query.nodes == (node,) or not reached.hosts:
                raise error
            if node in query.nodes:
                yield RankLine(node, "", f"[dspark: not reached: {error.message}]")
        hosts = {node: host for node, host in reached.hosts.items() if node in query.nodes}
        sources = _sources(hosts, inventory.name, query)
        lines = _live(sources, clock) if query.follow else heapq.merge(*sources.values(), key=lambda line: line.at)
        for line in lines:
            if query.pattern is None or query.pattern.search(line.text):
                yield line


def _sources(hosts: Mapping[str, Host], pair: str, query: LogQuery) -> dict[str, Iterator[RankLine]]:
    sources = {}
    for node, host in hosts.items():
        containers = sorted(host.engine().containers(pair), key=lambda each: each.state not in ALIVE)
        if containers:
            lines = host.engine().logs(containers[0].id, follow=query.follow, since_s=query.since_s, tail=query.tail)
            sources[node] = _marked(node, lines)
    if not sources:
        asked = " and ".join(query.nodes)
        raise NotAsWanted(
            f"{asked}: no rank of {pair!r} has a container, so there is no log",
            remedy="`dspark status` shows the pair, `dspark up` starts it",
        )
    return sources


def _marked(node: str, lines: Iterator[LogLine]) -> Iterator[RankLine]:
    for line in lines:
        # A progress bar redraws itself with carriage returns: its last state is what counts.
        yield RankLine(node, line.at, line.text.rstrip("\r\n").rsplit("\r", 1)[-1])


def _live(sources: Mapping[str, Iterator[RankLine]], clock: Clock) -> Iterator[RankLine]:
    """Lines of all sources as they come. Ends when every source has ended."""
    arrived: queue.SimpleQueue[RankLine | DsparkError | None] = queue.SimpleQueue()
    for lines in sources.values():
        threading.Thread(target=_pump, args=(lines, arrived), daemon=True).start()
    running = len(sources)
    while running:
        clock.sleep(0)
        try:
            line = arrived.get(timeout=TURN_S)
        except queue.Empty:
            continue
        if line is None:
            running -= 1
        elif isinstance(line, DsparkError):
            raise line
        else:
            yield line


def _pump(lines: Iterator[RankLine], arrived: queue.SimpleQueue[RankLine | DsparkError | None]) -> None:
    try:
        for line in lines:
            arrived.put(line)
    except DsparkError as error:
        arrived.put(error)
    else:
        arrived.put(None)
