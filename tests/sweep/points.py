"""What is stopped where: every remote step of every command that changes a pair, in every way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Way = Literal["kill", "interrupt", "cut", "engine", "unreachable"]
WAYS: tuple[Way, ...] = ("kill", "interrupt", "cut", "engine", "unreachable")
ABOUT: dict[Way, str] = {
    "kill": "the tool is killed (SIGKILL)",
    "interrupt": "the tool is interrupted (SIGINT)",
    "cut": "the SSH connection to the node of that step is cut",
    "engine": "the Docker daemon of that node is stopped, or killed, by turns",
    "unreachable": "that node is not reached any more; what runs there goes on",
}
LASTING: tuple[Way, ...] = ("engine", "unreachable")
COMMANDS = ("up", "switch", "rollback", "down")


@dataclass(frozen=True, slots=True)
class Point:
    """One command, stopped after one of its steps in one way."""

    command: str
    number: int  # of the step, from 1, in the order in which an undisturbed run took them
    node: str
    step: str
    occurrence: int  # of that step on that node
    way: Way

    def __str__(self) -> str:
        again = f" ({self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.command} {self.number}, {self.step}{again} on the {self.node}: {self.way}"


def points_of(command: str, done: Iterable[tuple[str, str, int]], ways: Iterable[Way] = WAYS) -> list[Point]:
    """Every way after every step of `done`, which an undisturbed run of `command` has left."""
    return [
        Point(command, number, node, step, occurrence, way)
        for number, (node, step, occurrence) in enumerate(done, start=1)
        for way in ways
    ]
