"""Two `up`s at once, from two controllers: one wins, one meets the lock, and the pair serves."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

from .judge import NODES, alive, is_quiet
from .side import Side

ROUNDS = 20


class Twice:
    """All rounds, in a process of their own that plays from now on."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a process that forks the tool must have no thread
        self._told, theirs = context.Pipe()
        self._process = context.Process(target=_play, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def wrong(self) -> list[str]:
        """Wait for their end. What was wrong in each."""
        try:
            found: list[str] = self._told.recv()
        except EOFError:
            found = ["two runs at once: whoever played them has ended without a word"]
        self._process.join()
        return found


def _play(connection: Connection) -> None:
    side = Side()
    try:
        rounds = [_round(side) for _ in range(ROUNDS)]
        connection.send(
            [f"two runs at once, {number}: {each}" for number, wrong in enumerate(rounds) for each in wrong]
        )
    finally:
        side.close()


def _round(side: Side) -> list[str]:
    side.ask("empty")
    side.until(is_quiet)
    runs = [side.start("up", "-p", "agent-1m", controller=name) for name in ("one", "other")]
    ended = [side.end(run) for run in runs]
    serving = alive(side.told())
    wrong = []
    if sorted(ran.returncode for ran in ended) != [0, 6]:
        wrong.append("\n".join(map(str, ended)))
    if len(set(serving.values())) != 1 or None in serving.values():
        wrong.append(f"it left {serving}")
    if any(len(side.told()[node]["containers"]) != 1 for node in NODES):
        wrong.append(f"more than one container a node: {side.told()}")
    return wrong
