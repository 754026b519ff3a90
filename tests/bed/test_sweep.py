"""A sample of the fault sweep on the two real hosts: each command stopped in each way, after one of its steps.

All points are played on the embedded pair (tests/sweep/, `make test-sweep`). Here a step has ended when sshd has logged
the end of its session, or when dockerd shows what it did; whoever breaks something then does it as fast as it is seen.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tests.warm import LIMIT_S, ToolRun

from .bed import Bed
from .faults import FaultyNode
from .host import wait_until
from .images import STAGE_C
from .run import Ran
from .tool import begin, dspark, result

STATE = ".local/share/dspark/spark-pair"  # on a node, in its user's home


@dataclass(frozen=True, slots=True)
class Point:
    """A command, after what it is stopped, and how."""

    command: str
    way: str
    node: str
    after: str  # `session N`: the end of the N-th that this command had there; `stopped`: of the rank there

    def reached(self, bed: Bed, sessions: int) -> bool:
        """`sessions`: how many had ended there before the command began."""
        node = node_of(bed, self.node)
        match self.after.split():
            case ["session", number]:
                return ended_sessions(node) - sessions >= int(number)
            case _:
                return not node.containers()


# Twenty points that leave no rank in the middle of its boot: such a one ignores SIGTERM, as the real one does, and
# takes its whole grace to end. The embedded pair has those, too. In an order in which each finds what the mending of
# the one before has left: nothing runs before an `up`, and before the others agent-1m serves on anemll.
STARTS_AND_ENDS = (
    Point("up", "kill", "worker", "session 3"),
    Point("down", "kill", "head", "stopped"),
    Point("up", "kill", "head", "session 1"),
    Point("down", "kill", "worker", "stopped"),
    Point("up", "interrupt", "worker", "session 2"),
    Point("up", "cut", "head", "session 1"),
    Point("down", "interrupt", "head", "stopped"),
    Point("down", "cut", "head", "stopped"),
    Point("down", "dockerd", "worker", "stopped"),
    Point("down", "unreachable", "head", "stopped"),
)
CHANGES = (
    Point("switch", "kill", "head", "stopped"),
    Point("switch", "kill", "worker", "session 3"),
    Point("switch", "interrupt", "head", "session 2"),
    Point("switch", "cut", "head", "stopped"),
    Point("switch", "dockerd", "head", "stopped"),
    Point("rollback", "kill", "head", "stopped"),
    Point("rollback", "kill", "head", "session 1"),
    Point("rollback", "interrupt", "head", "stopped"),
    Point("rollback", "cut", "head", "stopped"),
    Point("rollback", "unreachable", "head", "stopped"),
)
LASTING = {"dockerd", "unreachable"}


@pytest.mark.parametrize("points", [STARTS_AND_ENDS, CHANGES], ids=["up and down", "switch and rollback"])
def test_one_command_mends_what_a_stopped_one_leaves(bed: Bed, points: tuple[Point, ...]) -> None:
    if points[0].command != "up":
        dspark(bed, "up", "-p", "agent-1m").check()
    for point, following in pairwise((*points, points[0])):
        assert serves_before(bed) == (point.command != "up"), point
        ran = stopped(bed, point)
        gone = node_of(bed, point.node) if point.way in LASTING else None
        assert "Traceback" not in ran.stderr, (point, ran)
        status_is_true(bed, point, ran)
        if point.way in {"interrupt", "cut"} and point.command in {"switch", "rollback"}:
            assert serves_before(bed), (point, ran)
        if gone is not None:
            down_with_one_gone(bed, point)
            restored(gone, point.way)
        serves = following.command != "up"
        if wrong(bed, serves=serves):
            mend = ("up", "-p", "agent-1m", "--yes") if serves else ("down",)
            dspark(bed, *mend, "--lock-wait", "5s").check()
        assert wrong(bed, serves=serves) == [], (point, ran)
        for node in bed.nodes:
            wait_until(lambda node=node: not python_programs(node), 10, f"the end of all programs, {point}")  # type: ignore[misc]  # mypy knows no default of a lambda


def test_down_names_what_a_rank_leaves(bed: Bed) -> None:
    for node in bed.nodes:
        node.write("/dev/shm/psm_before", "of somebody else")
    run = "run -d --label dspark.pair=spark-pair --stop-signal KILL --entrypoint sleep"
    bed.worker.docker(*run.split(), STAGE_C, "100").check()
    bed.worker.write("/dev/shm/psm_after", "of a rank")
    bed.worker.use_gpu("4242, VLLM::Worker_TP1")
    ran = dspark(bed, "down").check()
    assert "worker: left in shared memory: /dev/shm/psm_after\n" in ran.stderr
    assert "worker: process 4242, VLLM::Worker_TP1 still holds the GPU" in ran.stderr
    assert "psm_before" not in ran.stderr


def words(bed: Bed, command: str) -> tuple[str, ...]:
    """The command line. What a `switch` before has pushed is what a `rollback` goes to."""
    match command:
        case "switch":
            return "switch", "stage-c", "--yes"
        case "rollback":
            (running,) = bed.head.running()
            kept = {path.name for path in bed.head.path(f"{bed.head.home}/{STATE}/releases").iterdir()}
            (other,) = kept - {running.labels["dspark.release"]}
            return "rollback", other, "--yes"
        case _:
            return (command,)


def stopped(bed: Bed, point: Point) -> Ran:
    """Run the command and break something once its step has ended."""
    node = node_of(bed, point.node)
    sessions = ended_sessions(node)
    running = begin(bed, *words(bed, point.command))
    wait_until(lambda: point.reached(bed, sessions) or running.poll() is not None, LIMIT_S, str(point))
    assert running.poll() is None, (point, running.end())
    broken(node, point.way, running)
    return running.end()


def broken(node: FaultyNode, way: str, running: ToolRun) -> None:
    """Break what `way` says."""
    ways: dict[str, Callable[[], None]] = {
        "kill": lambda: running.send_signal(signal.SIGKILL),
        "interrupt": lambda: running.send_signal(signal.SIGINT),
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


def status_is_true(bed: Bed, point: Point, after: Ran) -> None:
    """The word is what the containers say, by dockerd's own word."""
    ran = dspark(bed, "status", "--output", "json")
    told = result(ran)
    if point.way in LASTING:
        assert (told["state"], ran.returncode) == ("unknown", 5), (point, ran, after)
        return
    there = [any(node.running()) for node in bed.nodes]
    words = {0: {"down"}, 1: {"split"}, 2: {"serving", "booting", "mixed"}}[sum(there)]
    assert told["state"] in words, (point, ran, after)


def down_with_one_gone(bed: Bed, point: Point) -> None:
    """It ends the other node's rank, says that it is not all, and leaves a tombstone."""
    other = bed.worker if point.node == "head" else bed.head
    ran = dspark(bed, "down")
    assert ran.returncode == 8, (point, ran)
    assert other.containers() == [], (point, ran)
    assert f"unconfirmed-{point.node}" in marks(other), (point, ran)


def wrong(bed: Bed, *, serves: bool) -> list[str]:
    """What is not as it should be: nothing is to be left but what serves."""
    found = [] if serves_before(bed) == serves else ["what serves"]
    for node in bed.nodes:
        if len(node.containers()) != int(serves):
            found.append(f"{node.alias}: {node.containers()}")
        found += [f"{node.alias}: {mark}" for mark in marks(node)]
    return found


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
    path = node.path(f"{node.home}/{STATE}/marks.json")
    return sorted(json.loads(path.read_text())) if path.exists() else []


def python_programs(node: FaultyNode) -> list[str]:
    """Programs of the tool that still run there."""
    return [each.argv for each in node.processes() if "sys.stdin.buffer" in each.argv]
