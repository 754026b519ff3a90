"""Several processes, each with a pair of its own, that play the points of one list."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from .judge import Judge, Played
from .points import Point
from .side import Side

PIECE = 8  # points that one process is given at a time: a command's points share their beginning
COUNT = (os.cpu_count() or 1) + 1


class Players:
    """They are there from their creation on, and make their pairs at once."""

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")  # a process that forks the tool must have no thread
        self._processes: dict[Connection, BaseProcess] = {}
        for _ in range(count):
            ours, theirs = context.Pipe()
            process: BaseProcess = context.Process(target=_player, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._processes[ours] = process

    def play(self, points: list[Point], deadline: float, say: Callable[[str], None]) -> list[Played]:
        """Play them until `deadline`; `say` is told of each: . well, o its step never came, else what was wrong."""
        pieces = [points[start : start + PIECE] for start in range(0, len(points), PIECE)]
        played: list[Played] = []
        while self._processes and (left := deadline - time.monotonic()) > 0:
            for connection in wait(list(self._processes), left):
                assert isinstance(connection, Connection)
                try:
                    found: list[Played] = connection.recv()
                except EOFError:
                    self._processes.pop(connection).join()
                    continue
                played += found
                for each in found:
                    well = "." if each.met else "o"
                    say("\n".join(("", f"=== {each.point}", *each.wrong, "")) if each.wrong else well)
                connection.send(pieces.pop(0) if pieces else [])
        for process in self._processes.values():
            process.terminate()
        return played


def _player(connection: Connection) -> None:
    """Play what comes until nothing more comes. After a point that went wrong, on a pair that is made anew."""
    side = Side()
    judge = Judge(side)
    connection.send([])
    while piece := connection.recv():
        played = []
        for point in piece:
            played.append(judge.play(point))
            if played[-1].wrong:
                side.close()
                side = Side()
                judge = Judge(side)
        connection.send(played)
    side.close()
