"""A sample of the fault sweep on the two real hosts: each command stopped in each way, after one of its steps.

All points are played on the embedded pair (tests/sweep/, `make test-sweep`). Here a step has ended when sshd has logged
the end of its session, or when dockerd shows what it did; whoever breaks something then does it as fast as it is seen.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from .bed import Bed
from .faults import FaultyNode
from .host import wait_until
from .run import Ran
from .tool import DSPARK, dspark, result

pytestmark = pytest.mark.sweep

LIMIT_S = 60.0
COMMANDS = {
    "up": ("up", "-p", "agent-1m"),
    "switch": ("switch", "stage-c", "--yes"),
    "rollback": ("rollback", "--yes"),
    "down": ("down",),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A command, and after what it is stopped."""

    command: str
    node: str
    after: str  # `session N`: the end of the N-th that this command had there; `started`, `stopped`: of the rank there

    def reached(self, bed: Bed, sessions: int) -> bool:
        """`sessions`: how many had ended there before the command began."""
        node = node_of(bed, self.node)
        match self.after.split():
            case ["session", number]:
                return ended_sessions(node) - sessions >= int(number)
            case ["started"]:
                return any(node.running())
            case _:
                return not node.containers()


# Twenty points that leave no rank in the middle of its boot: such a one ignores SIGTERM, as the real one does, and
# takes its whole grace to end. The embedded pair has those, too.
POINTS = {
    "kill": (
        Point("up", "worker", "session 3"),
        Point("up", "head", "session 1"),
        Point("switch", "head", "stopped"),
        Point("switch", "worker", "session 3"),
        Point("rollback", "head", "stopped"),
        Point("rollback", "head", "session 1"),
        Point("down", "head", "stopped"),
        Point("down", "worker", "stopped"),
    ),
    "interrupt": (
        Point("up", "worker", "session 2"),
        Point("switch", "head", "session 2"),
        Point("rollback", "head", "stopped"),
        Point("down", "head", "stopped"),
    ),
    "cut": (
        Point("up", "head", "session 2"),
        Point("switch", "head", "stopped"),
        Point("rollback", "head", "stopped"),
        Point("down", "head", "stopped"),
    ),
    "dockerd": (
        Point("switch", "head", "stopped"),
        Point("down", "worker", "stopped"),
    ),
    "unreachable": (
        Point("rollback", "head", "stopped"),
        Point("down", "head", "stopped"),
    ),
}
LASTING = {"dockerd", "unreachable"}


@pytest.mark.parametrize("way", POINTS)
def test_one_command_mends_what_a_stopped_one_leaves(bed: Bed, way: str) -> None:
    for point in POINTS[way]:
        prepare(bed, point.command)
        ran = stopped(bed, point, way)
        gone = node_of(bed, point.node) if way in LASTING else None
        assert "Traceback" not in ran.stderr, (point, ran)
        status_is_true(bed, point, gone, ran)
        if way in {"interrupt", "cut"} and point.command in {"switch", "rollback"} and "detached" not in ran.stderr:
            assert serves_before(bed), (point, ran)
        if gone is not None:
            other = bed.worker if gone is bed.head else bed.head
            down = dspark(bed, "down")
            assert down.returncode == 8, (point, down)
            assert other.containers() == [], (point, down)
            assert f"unconfirmed-{point.node}" in marks(other), (point, down)
            restored(gone, way)
        mend = ("down",) if point.command == "up" else ("up", "-p", "agent-1m", "--yes")
        dspark(bed, *mend, "--lock-wait", "40s").check()
        is_clean(bed, serves=point.command != "up", after=point)


def prepare(bed: Bed, command: str) -> None:
    """Nothing runs for `up`; for the others agent-1m serves on anemll, and served on stage-c before."""
    if command == "rollback":
        if not serves_before(bed):
            dspark(bed, "up", "-p", "agent-1m").check()
        told = dspark(bed, "history").check().stdout.splitlines()
        if not any(" stage-c " in line and line.endswith("serving") for line in told):
            dspark(bed, "switch", "stage-c", "--yes").check()
    if command == "up":
        dspark(bed, "down").check()
    elif not serves_before(bed):
        dspark(bed, "up", "-p", "agent-1m", "--yes").check()


def stopped(bed: Bed, point: Point, way: str) -> Ran:
    """Run the command and break something once its step has ended."""
    node = node_of(bed, point.node)
    sessions = ended_sessions(node)
    bed.inventory()
    process = bed.popen([DSPARK, *COMMANDS[point.command]])
    wait_until(lambda: point.reached(bed, sessions) or process.poll() is not None, LIMIT_S, str(point))
    assert process.poll() is None, (point, process.communicate())
    broken(node, way, process)
    out, err = process.communicate(timeout=LIMIT_S)
    return Ran(COMMANDS[point.command], process.returncode, out, err, 0.0)


def broken(node: FaultyNode, way: str, process: subprocess.Popen[str]) -> None:
    """Break what `way` says."""
    ways: dict[str, Callable[[], None]] = {
        "kill": lambda: process.send_signal(signal.SIGKILL),
        "interrupt": lambda: process.send_signal(signal.SIGINT),
        "cut": node.cut_sessions,
        "dockerd": node.stop_dockerd,
        "unreachable": lambda: node.stop_sshd(sessions=True),
    }
    ways[way]()


def restored(node: FaultyNode, way: str) -> None:
    """Mend what `broken` broke on the node."""
    ways: dict[str, Callable[[], None]] = {
        "dockerd": node.start_dockerd,
        "unreachable": node.start_sshd,
    }
    ways[way]()


def status_is_true(bed: Bed, point: Point, gone: FaultyNode | None, after: Ran) -> None:
    """The word is what the containers say, by dockerd's own word."""
    ran = dspark(bed, "status", "--output", "json")
    told = result(ran)
    if gone is not None:
        assert (told["state"], ran.returncode) == ("unknown", 5), (point, ran, after)
        return
    there = [any(node.running()) for node in bed.nodes]
    words = {0: {"down"}, 1: {"split"}, 2: {"serving", "booting", "mixed"}}[sum(there)]
    assert told["state"] in words, (point, ran, after)


def is_clean(bed: Bed, *, serves: bool, after: Point) -> None:
    """Nothing is left but what serves."""
    assert serves_before(bed) == serves, after
    for node in bed.nodes:
        assert len(node.containers()) == int(serves), after
        assert marks(node) == [], after
        wait_until(lambda node=node: not python_programs(node), 10, f"the end of all programs, {after}")  # type: ignore[misc]  # mypy knows no default of a lambda


def serves_before(bed: Bed) -> bool:
    """Whether both ranks run agent-1m on anemll. `up` has just proved it, or the tool has said so."""
    names = ("dspark.profile", "dspark.family")
    ranks = [[[rank.labels[name] for name in names] for rank in node.running()] for node in bed.nodes]
    return ranks == [[["agent-1m", "anemll"]]] * 2


def node_of(bed: Bed, name: str) -> FaultyNode:
    """By its role."""
    return bed.head if name == "head" else bed.worker


def ended_sessions(node: FaultyNode) -> int:
    """How many commands have ended there."""
    return node.ssh_log(whole=True).count("Close session:")


def marks(node: FaultyNode) -> list[str]:
    """What runs have left there for the next one to heed."""
    path = node.path(f"{node.home}/.local/share/dspark/spark-pair/marks.json")
    return sorted(json.loads(path.read_text())) if path.exists() else []


def python_programs(node: FaultyNode) -> list[str]:
    """Programs of the tool that still run there."""
    return [each.argv for each in node.processes() if "sys.stdin.buffer" in each.argv]
