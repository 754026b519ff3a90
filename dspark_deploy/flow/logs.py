"""`logs`: what both ranks printed, merged on time, each line with the node it comes from."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from functools import partial

from dspark_deploy.errors import NotAsWanted
from dspark_deploy.flow.follow import follow_logs
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.pair import reach_pair
from dspark_deploy.flow.ranklines import LogQuery, RankLine, Source, newest, said, source_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Engine, Host
from dspark_deploy.remote.parallel import together


def read_logs(wish: Wish, query: LogQuery, clock: Clock) -> Iterator[RankLine]:
    """The lines, oldest first; with `follow` as they come, until no asked rank has run for `new_rank_s`.

    Raises NotAsWanted where no asked rank has a container. A node that can't be reached is an error only when its
    rank was asked for by name; else it is told as a line of its own.
    """
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        for node, error in reached.unreachable.items():
            if query.nodes == (node,) or not reached.hosts:
                raise error
            if node in query.nodes:
                yield said(node, f"not reached: {error.message}")
        sources = sources_of(reached.hosts, inventory.name, query.nodes, clock)
        if query.follow:
            lines = follow_logs(reached.hosts, inventory.name, sources, query, clock)
        else:
            lines = merged(reached.hosts, sources, query)
        yield from (line for line in lines if query.wants(line))


def sources_of(hosts: Mapping[str, Host], pair: str, nodes: tuple[str, ...], clock: Clock) -> dict[str, Source]:
    """The asked ranks that have a container, in that order. Raises NotAsWanted where none has."""

    def find(node: str) -> Source | None:
        engine = hosts[node].engine()
        return source_of(node, engine, newest(engine.containers(pair)))

    work = {node: partial(find, node) for node in nodes if node in hosts}
    sources = {node: source for node, source in together(work, clock).items() if source is not None}
    if not sources:
        asked = " and ".join(nodes)
        raise NotAsWanted(
            f"{asked}: no rank of {pair!r} has a container, so there is no log",
            remedy="`dspark status` shows the pair, `dspark up` starts it",
        )
    return sources


def merged(hosts: Mapping[str, Host], sources: Mapping[str, Source], query: LogQuery) -> Iterator[RankLine]:
    """What the ranks have printed so far."""
    lines = (_printed(source, hosts[node].engine(), query) for node, source in sources.items())
    return heapq.merge(*lines, key=lambda line: line.at)


def _printed(source: Source, engine: Engine, query: LogQuery) -> Iterator[RankLine]:
    for line in engine.logs(source.container.id, since_s=query.since_s, tail=query.tail):
        yield source.mark(line)
