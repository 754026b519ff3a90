"""`down`: end the pair, head first, and prove by label that nothing of it is left."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from dspark_deploy.errors import DsparkError, Interrupted, LockLost, NodeUnreachable
from dspark_deploy.execute.journal import note, tombstones, try_journals
from dspark_deploy.execute.lock import RETAKE_S, GuardedClock, locked
from dspark_deploy.execute.ranks import stop_all
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.pair import Reached, reach_pair
from dspark_deploy.flow.record import Record, state_home
from dspark_deploy.flow.renew import Renew, insist, renewal
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.journal import BOOTING, UNCONFIRMED, Entry, Mark
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.remote.clock import Clock
from dspark_deploy.watch.leftovers import left_over
from dspark_deploy.watch.memory import await_memory


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """What `down` did on one node. `problem` is empty where nothing of the pair is left, by its label."""

    node: str
    stopped: tuple[str, ...]  # containers that it ended and removed
    problem: str = ""
    remedy: str = ""
    left: tuple[str, ...] = ()  # what its processes have left besides: memory, shared memory, whoever holds the GPU


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

    A step once begun is finished: an interruption between two nodes leaves the second as it was, and is told so.
    """
    inventory = load_inventory_of(wish)
    with ExitStack() as opened:
        reached = opened.enter_context(reach_pair(inventory, wish, clock))
        _need_one(reached)
        record = Record(state_home(wish.environment, wish.home), inventory.name, "down", observer.warn)
        reached, guarded = lock_reached(reached, record, clock, opened, wait_s=lock_wait_s)
        down = _Down(reached, record, observer, guarded, renewal(reached.hosts, guarded))
        return DownReport(inventory.name, down.take())


def lock_reached(
    reached: Reached, record: Record, clock: Clock, opened: ExitStack, *, wait_s: float
) -> tuple[Reached, GuardedClock]:
    """Every lock that can be had, until `opened` is closed, and whose nodes these are.

    A connection that breaks meanwhile is opened anew, once; what can't be reached then keeps the other node from
    nothing. Raises NodeUnreachable where none is left.
    """
    renewed: set[str] = set()
    while True:
        locks = locked(reached.hosts, record.pair, record.owner, clock, wait_s=wait_s)
        try:
            return reached, opened.enter_context(locks)
        except NodeUnreachable as error:
            if error.node not in reached.hosts:
                raise
            reached = _again(reached, error, renewed)
            _need_one(reached)
            wait_s = max(wait_s, RETAKE_S)  # our own lock from before may be held that long


def _again(reached: Reached, error: NodeUnreachable, renewed: set[str]) -> Reached:
    """The nodes after a connection broke: opened anew, or less this one."""
    node = error.node or ""
    try:
        if node in renewed:
            raise error
        renewed.add(node)
        reached.hosts.renew(node)
    except NodeUnreachable as gone:
        reached.hosts.pop(node).close()
        return Reached(reached.hosts, {**reached.unreachable, node: gone})
    return reached


@dataclass(frozen=True, slots=True)
class _Down:
    """One `down` on what could be reached, under its locks."""

    reached: Reached
    record: Record
    observer: Observer
    clock: Clock
    renew: Renew

    def take(self) -> tuple[NodeEnd, ...]:
        """Both nodes, head first; then what is left there besides."""
        self.observer.begin(len(HEAD_FIRST))
        ended: dict[str, tuple[Container, ...]] = {}
        ends: dict[str, NodeEnd] = {}
        try:
            for node in HEAD_FIRST:
                self._between()
                ends[node], ended[node] = self._end(node)
        except Interrupted as error:
            error.why = f"{' and '.join(ends) or 'nothing'} was ended; {', '.join(_others(ends))} is as it was"
            raise
        finally:
            self._note(tuple(ends.values()))
        return tuple(replace(end, left=self._left(end.node, ended[end.node])) for end in ends.values())

    def _between(self) -> None:
        """Where an interruption does no harm. A node that was lost has its own turn to say so."""
        with suppress(NodeUnreachable):
            self.clock.sleep(0)

    def _end(self, node: str) -> tuple[NodeEnd, tuple[Container, ...]]:
        self.observer.started(f"stop the {node}")
        error: DsparkError
        if node in self.reached.unreachable:
            error = self.reached.unreachable[node]
            self.observer.warn(f"{error.message}: its rank is NOT stopped")
            problem = f"not reached, its rank is NOT stopped: {error.message}"
            return NodeEnd(node, (), problem, error.remedy), ()
        try:
            ended = insist(lambda: stop_all(self.reached.hosts[node], self.record.pair), self.renew)
        except (LockLost, Interrupted):
            raise
        except DsparkError as failed:  # whatever happens on one node, the other is still to be ended
            self.observer.warn(failed.message)
            return NodeEnd(node, (), failed.message, failed.remedy), ()
        names = tuple(container.name for container in ended)
        self.observer.finished(", ".join(names) or "nothing to stop")
        return NodeEnd(node, names), ended

    def _note(self, ends: tuple[NodeEnd, ...]) -> None:
        """A tombstone for each node that was not confirmed, none for the others. Nothing ended, no mark: no trace."""
        pair, clock, hosts = self.record.pair, self.clock.shielded(), self.reached.hosts
        unclean = {end.node: end.problem for end in ends if end.problem}
        ended = any(end.stopped for end in ends)
        confirmed: dict[str, Mark | None] = {f"{UNCONFIRMED}{end.node}": None for end in ends}
        marks = {BOOTING: None, **confirmed, **tombstones(unclean, self.record.began, self.record.who)}
        if not unclean and not ended:
            there = {name for journal in try_journals(hosts, pair, clock).values() for name in journal.marks}
            if not there & marks.keys():
                return
        outcome = "not-as-wanted" if unclean else "down"
        entry = Entry(self.record.path.name, self.record.began, self.record.who, "down", outcome)
        failed = note(hosts, pair, clock, entry=entry if ended or unclean else None, marks=marks)
        for node, error in failed.items():
            if node not in unclean:
                self.observer.warn(f"{error.message}: the history of that node misses this")

    def _left(self, node: str, ended: tuple[Container, ...]) -> tuple[str, ...]:
        """What is left of ranks that are gone; their memory is waited for."""
        if not ended:
            return ()
        host = self.reached.hosts[node]
        left = left_over(host, ended)
        held = max((container.gpu_memory_utilization or 0.0 for container in ended), default=0.0)
        try:
            if held:
                await_memory({node: host}, held, self.clock.shielded())
        except DsparkError as error:
            left = (*left, error.message)
        for each in left:
            self.observer.warn(f"{node}: {each}")
        return left


def _others(ends: Mapping[str, NodeEnd]) -> tuple[str, ...]:
    return tuple(node for node in HEAD_FIRST if node not in ends)


def _need_one(reached: Reached) -> None:
    if reached.hosts:
        return
    head, worker = (reached.unreachable[node] for node in HEAD_FIRST)
    raise NodeUnreachable(head.message, why=f"and {worker.message}", remedy=head.remedy, node=head.node)
