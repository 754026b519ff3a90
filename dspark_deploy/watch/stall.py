"""Has the boot come to a stand? Only when nothing of either rank moves: neither its log nor what it does in silence."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dspark_deploy.errors import DsparkError, LaunchFailed
from dspark_deploy.facts.pulse import Pulse, moved, parse_pulse
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import Task
from dspark_deploy.watch.boot import BootWatch
from dspark_deploy.watch.verdict import last_lines

TURNS = 5  # pulses in the time after which a stall is called
LONGEST_TURN_S, SHORTEST_TURN_S = 60.0, 1.0
FIRST_S = 5.0  # into a wait
PULSE_S = 15.0  # of one answer

Pulses = Mapping[str, Pulse | DsparkError]


class StallWatch:
    """Feels both ranks' pulses now and then, in a thread, so that no wait is held up."""

    def __init__(self, hosts: Mapping[str, Host], boot: BootWatch, clock: Clock, stall_s: float) -> None:
        self._hosts = hosts
        self._boot = boot
        self._clock = clock
        self._stall_s = stall_s
        self._turn_s = max(SHORTEST_TURN_S, min(stall_s / TURNS, LONGEST_TURN_S))
        self._moved_s = clock.now()
        self._asked_s = self._moved_s - self._turn_s + min(self._turn_s, FIRST_S)
        self._task: Task[Pulses] | None = None
        self._before: tuple[Pulses, float] | None = None  # what there was when something last moved, and when
        self._last: Pulses = {}

    def turn(self) -> None:
        """Raises LaunchFailed once nothing has moved for the time that is allowed."""
        now_s = self._clock.now()
        if self._task is None and now_s - self._asked_s >= self._turn_s:
            self._asked_s = now_s
            self._task = Task(self._feel)
        elif self._task is not None and self._task.done.is_set():
            self._compare(self._task.result(), self._asked_s)
            self._task = None
            heard_s = max(self._boot.position("head").heard_s, self._boot.position("worker").heard_s)
            still_s = self._asked_s - max(heard_s, self._moved_s)
            if still_s >= self._stall_s:
                raise self._stalled(still_s)

    def _compare(self, pulses: Pulses, felt_s: float) -> None:
        self._last = pulses
        if self._before is None:
            self._before = pulses, felt_s
        elif _moved(self._before[0], pulses, felt_s - self._before[1]):
            self._before, self._moved_s = (pulses, felt_s), felt_s

    def _feel(self) -> Pulses:
        work = {node: Task(partial(self._pulse, node)) for node in self._boot.ranks}
        for task in work.values():
            task.wait(self._clock.shielded())
        return {node: task.result() for node, task in work.items()}

    def _pulse(self, node: str) -> Pulse | DsparkError:
        try:
            request = {"container": self._boot.ranks[node].container_id}
            return parse_pulse(self._hosts[node].call("pulse", request, timeout_s=PULSE_S))
        except DsparkError as error:
            return error

    def _stalled(self, still_s: float) -> LaunchFailed:
        phases = (self._boot.position("head").phase, self._boot.position("worker").phase)
        head, worker = ("before its first known line" if each is None else f"in phase {each.label}" for each in phases)
        unread = [line for node, pulse in self._last.items() for line in _unread(node, pulse)]
        looked = "log lines, phase, CPU time, compilers and compile caches were looked at"
        words = [f"{node}: {last_lines(rank, 1)}" for node, rank in self._boot.ranks.items()]
        return LaunchFailed(
            f"nothing of either rank has moved for {still_s:.0f} s: the head is {head}, the worker {worker}",
            why="\n".join((looked, *unread, *words)),
            remedy="raise --stall if this is known to take longer, else mend what the last lines name",
        )


def _moved(before: Pulses, after: Pulses, seconds: float) -> bool:
    pairs = ((before.get(node), pulse) for node, pulse in after.items())
    return before.keys() != after.keys() or any(
        moved(earlier, later, seconds)
        for earlier, later in pairs
        if isinstance(earlier, Pulse) and isinstance(later, Pulse)
    )


def _unread(node: str, pulse: Pulse | DsparkError) -> list[str]:
    if isinstance(pulse, DsparkError):
        return [f"{node}: nothing but the log can be read ({pulse.message})"]
    return [f"{node}: {what} can't be read ({why})" for what, why in pulse.unread.items()]
