"""Play one point on the embedded pair, and hold what follows to what was promised."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..bed.run import Ran
from .points import LASTING, Point, points_of
from .side import QUIET_S, Hangs, Running, Side

NODES = ("head", "worker")
ALIVE = ("running", "restarting", "paused")


@dataclass
class Played:
    """One point, and what is wrong with what followed."""

    point: Point
    met: bool
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Judge:
    """A pair that serves release `before` at first, and can be told to serve `other`."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.before = self.serve("up", "-p", "agent-1m")
        self.other = self.serve("switch", "stage-c", "-y")
        self.serve("up", "-p", "agent-1m", "-y")

    def serve(self, *words: str) -> str:
        """The release that serves then."""
        release: str = self.side.dspark(*words, "--output", "json").check().json()["result"]["release"]
        return release

    def words(self, command: str) -> tuple[str, ...]:
        """The command line that is stopped."""
        return {
            "up": ("up", "-p", "agent-1m"),
            "switch": ("switch", "stage-c", "-y"),
            "rollback": ("rollback", self.other, "-y"),
            "down": ("down",),
        }[command]

    def points(self, command: str) -> list[Point]:
        """All of a command's, from a run that nothing stops."""
        self.prepare(command)
        self.side.ask("begin")
        self.side.dspark(*self.words(command)).check()
        return points_of(command, [tuple(each) for each in self.side.ask("done")])

    def prepare(self, command: str) -> None:
        """Have the pair as the command finds it.

        For `up` nothing runs, and the nodes have never heard of the pair. For the others `before` serves; for `switch`
        `other` was never pushed and its image never looked into, for `rollback` it is kept.
        """
        told = self.side.told()
        if command == "up":
            if any(told[node]["containers"] for node in NODES):
                self.side.dspark("down").check()
            self.side.ask("forget")
        elif command == "rollback" and not all(self.other in told[node]["releases"] for node in NODES):
            self.serve("up", "-p", "agent-1m", "-y")
            self.serve("switch", "stage-c", "-y")
        if command != "up" and alive(self.side.told()) != dict.fromkeys(NODES, self.before):
            self.serve("up", "-p", "agent-1m", "-y")
        if command == "switch":
            self.side.ask("forget release", release=self.other)
        self.side.until(lambda told: not any(told[node]["connections"] for node in NODES))

    def play(self, point: Point) -> Played:
        """All of it. What hangs is wrong, too; the pair is made anew by whoever plays the next one."""
        began = time.monotonic()
        played = Played(point, met=False)
        try:
            self.prepare(point.command)
            played.wrong += self._play(point, played)
        except (Hangs, AssertionError) as error:
            played.wrong.append(f"{type(error).__name__}: {error}")
        played.seconds = time.monotonic() - began
        return played

    def _play(self, point: Point, played: Played) -> Iterator[str]:
        side = self.side
        side.ask("begin", held=(point.node, point.step, point.occurrence))
        running = side.start(*self.words(point.command))
        played.met = side.met(running)
        if played.met:
            self._stop(point, running)
            side.ask("let go")
        ran = side.end(running)
        side.ask("begin")
        yield from self._ended(point, ran)
        lasting = played.met and point.way in LASTING
        gone = point.node if lasting else None
        yield from self._nothing_hangs_on(gone)
        yield from self._status(gone, ran)
        yield from self._promise(point, ran) if played.met else ()
        if gone is not None:
            yield from self._down_with_one_gone(gone)
            side.ask("heal", node=gone)
        yield from self._mended(point)
        if shown := side.shown():
            yield f"the API key stands in {', '.join(shown)}"

    def _stop(self, point: Point, running: Running) -> None:
        match point.way:
            case "kill":
                running.send(signal.SIGKILL)
            case "interrupt":
                running.send(signal.SIGINT)
            case "cut":
                self.side.ask("cut", node=point.node)
            case "engine":
                self.side.ask("kill_engine" if point.number % 2 else "stop_engine", node=point.node)
            case "unreachable":
                self.side.ask("leave", node=point.node)

    def _ended(self, point: Point, ran: Ran) -> Iterator[str]:
        expected = {
            "kill": {0, -signal.SIGKILL},
            "interrupt": {0, 130},
            "cut": {0, 4, 5, 8},
            "engine": {0, 3, 4, 8},
            "unreachable": {0, 4, 5, 8},
        }[point.way]
        if ran.returncode not in expected or "Traceback" in ran.stderr:
            yield f"exit code, one of {sorted(expected)} expected:\n{ran}"

    def _nothing_hangs_on(self, gone: str | None) -> Iterator[str]:
        told = self.side.until(lambda told: not any(told[node]["programs"] or told[node]["lock"] for node in NODES))
        for node in NODES:
            if told[node]["programs"]:
                yield f"{node}: {told[node]['programs']} programs still run there, {QUIET_S} s later"
            if told[node]["lock"] and node != gone:
                yield f"{node}: the lock is still there"

    def _status(self, gone: str | None, after: Ran) -> Iterator[str]:
        ran = self.side.dspark("status", "--output", "json")
        told = self.side.told()
        result = ran.json()["result"]
        if result is None:
            yield f"status tells nothing: {ran}"
            return
        words, code = expected_status(told, gone)
        if result["state"] not in words or ran.returncode not in code:
            yield f"status says {result['state']}, exit {ran.returncode}; it is {words}: {told}, after\n{after}\n{ran}"
        for rank in result["ranks"]:
            node = rank["node"]
            there = told[node]["containers"]
            if node == gone:
                if rank["state"] != "unreachable":
                    yield f"status says that the rank of the {node} is {rank['state']}, and nobody can know: {ran}"
            elif rank["state"] != (there[0][0] if there else "absent"):
                yield f"status says that the rank of the {node} is {rank['state']}; it is {there}"

    def _promise(self, point: Point, ran: Ran) -> Iterator[str]:
        """What the tool said that it left, and what it has to leave where nothing keeps it from that."""
        if point.way == "kill":
            return
        now = alive(self.side.told())
        if point.command == "down":
            if (ran.returncode == 0 or point.way == "cut") and any(now.values()):
                yield f"it could reach both, and has not ended both: {now}\n{ran}"
            return
        was = dict.fromkeys(NODES, None if point.command == "up" else self.before)
        wanted = dict.fromkeys(NODES, self.before if point.command == "up" else self.other)
        if ran.returncode in {3, 5}:
            other = NODES if point.way != "engine" else [node for node in NODES if node != point.node]
            if any(now[node] != was[node] for node in other):
                yield f"exit {ran.returncode} says that nothing was changed: {now}\n{ran}"
        if ran.returncode == 0 and point.way == "engine":
            return  # proved, and the daemon went afterwards: what status says of that was judged already
        if ran.returncode == 0 or "detached" in ran.stderr:
            if now != wanted:
                yield f"it said that it served or went on booting: {now}\n{ran}"
        elif point.way in {"interrupt", "cut"} and now != was:
            yield f"everything could be reached, and the pair is not where it was: {now}\n{ran}"
        elif "serves again" in ran.stderr and now != was:
            yield f"it said that the release before serves again: {now}\n{ran}"
        elif ran.returncode != 8 and now != was and point.way == "unreachable":
            yield f"exit {ran.returncode} promises that the pair is where it was: {now}\n{ran}"

    def _down_with_one_gone(self, gone: str) -> Iterator[str]:
        other = NODES[1 - NODES.index(gone)]
        ran = self.side.dspark("down")
        told = self.side.told()
        if ran.returncode != 8 or gone not in ran.stdout:
            yield f"down with the {gone} gone: exit 8 naming it was expected:\n{ran}"
        if told[other]["containers"]:
            yield f"down with the {gone} gone has left {told[other]['containers']} on the {other}:\n{ran}"
        if f"unconfirmed-{gone}" not in told[other]["marks"]:
            yield f"no tombstone on the {other}: {told[other]['marks']}\n{ran}"

    def _mended(self, point: Point) -> Iterator[str]:
        """One command, and everything is well."""
        up = point.command in {"switch", "rollback"} or (point.command == "down" and point.number % 2 == 0)
        words = ("up", "-p", "agent-1m", "-y") if up else ("down",)
        ran = self.side.dspark(*words)
        if ran.returncode != 0:
            yield f"one `dspark {words[0]}` was to mend it:\n{ran}"
        told = self.side.until(is_quiet)
        if alive(told) != dict.fromkeys(NODES, self.before if up else None):
            yield f"after `dspark {words[0]}`: {told}\n{ran}"
        for node in NODES:
            there = told[node]
            if len(there["containers"]) != int(up) or there["marks"] or there["lock"] or there["programs"]:
                yield f"something is left on the {node} after `dspark {words[0]}`: {there}"
            if up and there["parts"]:
                yield f"a piece of a release is left on the {node}: {there['parts']}"


def is_quiet(told: dict[str, Any]) -> bool:
    """Whether nothing of the tool is on either node."""
    return not any(told[node][what] for node in NODES for what in ("programs", "lock"))


def alive(told: dict[str, Any]) -> dict[str, str | None]:
    """By node, the release of the rank that runs."""
    return {
        node: next((release for state, release, _ in told[node]["containers"] if state in ALIVE), None)
        for node in NODES
    }


def expected_status(told: dict[str, Any], gone: str | None) -> tuple[set[str], set[int]]:
    """The words that would be true, and the exit codes that go with them."""
    if gone is not None:
        return {"unknown"}, {5}
    head, worker = alive(told).values()
    if head is None and worker is None:
        return {"down"}, {8}
    if head is None or worker is None:
        return {"split"}, {8}
    return ({"serving", "booting"}, {0, 8}) if head == worker else ({"mixed"}, {8})
