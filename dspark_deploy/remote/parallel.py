"""Both nodes at once: the same work on each, results by node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from dspark_deploy.remote.clock import Clock

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
TURN_S = 0.1  # how soon an interruption is seen while the nodes work


class Task(Generic[T]):
    """One call in a thread of its own, its result or its error kept."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._result: list[T] = []
        self.error: BaseException | None = None
        self.done = threading.Event()
        # A daemon: an interrupted command does not wait for a node that no longer answers.
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._result.append(self._work())
        except BaseException as error:  # noqa: BLE001  carried to the caller's thread and raised there
            self.error = error
        finally:
            self.done.set()

    def wait(self, clock: Clock) -> None:
        while not self.done.wait(TURN_S):
            clock.sleep(0)

    def result(self) -> T:
        if self.error is not None:
            raise self.error
        return self._result[0]


def attempt(work: Mapping[K, Callable[[], T]], clock: Clock) -> dict[K, T | BaseException]:
    """Run all of `work` at once and wait for all of it; an error stands where its result would."""
    tasks = {key: Task(call) for key, call in work.items()}
    for task in tasks.values():
        task.wait(clock)
    return {key: task.error if task.error is not None else task.result() for key, task in tasks.items()}


def alongside(work: Callable[[], T], turn: Callable[[], None], clock: Clock, *, turn_s: float) -> T:
    """Run `work` and call `turn` each `turn_s` seconds until it ends; what `turn` raises ends the wait."""
    task = Task(work)
    next_turn = clock.now() + turn_s
    while not task.done.wait(TURN_S):
        clock.sleep(0)
        if clock.now() >= next_turn:
            turn()
            next_turn = clock.now() + turn_s
    return task.result()


def together(work: Mapping[K, Callable[[], T]], clock: Clock) -> dict[K, T]:
    """Like `attempt`, but the first error (in the order of `work`) is raised once all have ended."""
    results: dict[K, T] = {}
    for key, outcome in attempt(work, clock).items():
        if isinstance(outcome, BaseException):
            raise outcome
        results[key] = outcome
    return results


def beside(first: Callable[[], T], second: Callable[[], U], clock: Clock) -> tuple[T, U]:
    """Two different things at once; once both have ended the first error is raised."""
    tasks = Task(first), Task(second)
    for task in tasks:
        task.wait(clock)
    return tasks[0].result(), tasks[1].result()
