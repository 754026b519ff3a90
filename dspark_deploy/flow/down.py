"""`down`: end the pair, head first, and prove by label that nothing of it is left."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from dspark_deploy.errors import DsparkError, NodeUnreachable
from dspark_deploy.execute.journal import note, tombstones
from dspark_deploy.execute.lock import locked
from dspark_deploy.execute.ranks import stop_all
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import Reached, reach_pair
from dspark_deploy.flow.record import Record, state_home
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory
from dspark_deploy.plan.journal import BOOTING, UNCONFIRMED, Entry, Mark
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """What `down` did on one node. `problem` is empty where nothing of the pair is left, by its label."""

    node: str
    stopped: tuple[str, ...]  # containers that it ended and removed
    problem: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class DownReport:
    """Both nodes, head first."""

    pair: str
    nodes: tuple[NodeEnd, ...]

    @property
    def clean(self) -> bool:
        """Whether both nodes are confirmed to hold nothing of the pair."""
        return not any(node.problem for node in self.nodes)


@dataclass(frozen=True, slots=True)
class DownPlan:
    """What `down` would end, by node."""

    pair: str
    stops: Mapping[str, tuple[str, ...]]
    unreachable: Mapping[str, str]


def intend_down(wish: Wish, clock: Clock) -> DownPlan:
    """What `take_down` would end, and nothing ended."""
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        _need_one(reached)
        stops = {
            node: tuple(container.name for container in host.engine().containers(inventory.name))
            for node, host in reached.hosts.items()
        }
        return DownPlan(inventory.name, stops, {node: error.message for node, error in reached.unreachable.items()})


def take_down(wish: Wish, observer: Observer, clock: Clock, *, lock_wait_s: float = 0) -> DownReport:
    """End every container of the pair on every node that can be reached. Raises NodeUnreachable where none can.

    A step once begun is finished: an interruption between two nodes leaves the second as it was.
    """
    inventory = load_inventory_of(wish)
    with ExitStack() as opened:
        reached = opened.enter_context(reach_pair(inventory, wish, clock))
        _need_one(reached)
        record = Record(state_home(wish.environment, wish.home), inventory.name, "down", observer.warn)
        clock = opened.enter_context(locked(reached.hosts, inventory.name, record.owner, clock, wait_s=lock_wait_s))
        observer.begin(len(HEAD_FIRST))
        ends = tuple(_end(node, inventory, reached, observer, clock) for node in HEAD_FIRST)
        _note_down(ends, reached, record, observer, clock.shielded())
    return DownReport(inventory.name, ends)


def _note_down(ends: tuple[NodeEnd, ...], reached: Reached, record: Record, observer: Observer, clock: Clock) -> None:
    """A tombstone for each node that could not be confirmed; a `down` that found nothing leaves no trace."""
    unclean = {end.node: end.problem for end in ends if end.problem}
    if not unclean and not any(end.stopped for end in ends):
        return
    entry = Entry(record.path.name, record.began, record.who, "down", "not-as-wanted" if unclean else "down")
    gone: dict[str, Mark | None] = {f"{UNCONFIRMED}{end.node}": None for end in ends}
    marks = {BOOTING: None, **gone, **tombstones(unclean, record.began, record.who)}
    for error in note(reached.hosts, record.pair, clock, entry=entry, marks=marks).values():
        observer.warn(f"{error.message}: the history of that node misses this")


def _end(node: str, inventory: Inventory, reached: Reached, observer: Observer, clock: Clock) -> NodeEnd:
    clock.sleep(0)
    observer.started(f"stop the {node}")
    if node in reached.unreachable:
        error = reached.unreachable[node]
        observer.warn(f"{error.message}: its rank is NOT stopped")
        return NodeEnd(node, (), f"not reached, its rank is NOT stopped: {error.message}", error.remedy)
    return _stop(reached.hosts[node], inventory.name, observer)


def _stop(host: Host, pair: str, observer: Observer) -> NodeEnd:
    try:
        stopped = tuple(container.name for container in stop_all(host, pair))
    except DsparkError as error:  # whatever happens on one node, the other is still to be ended
        observer.warn(error.message)
        return NodeEnd(host.name, (), error.message, error.remedy)
    observer.finished(", ".join(stopped) or "nothing to stop")
    return NodeEnd(host.name, stopped)


def _need_one(reached: Reached) -> None:
    if reached.hosts:
        return
    head, worker = (reached.unreachable[node] for node in HEAD_FIRST)
    raise NodeUnreachable(head.message, why=f"and {worker.message}", remedy=head.remedy, node=head.node)
