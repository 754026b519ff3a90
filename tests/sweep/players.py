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


def play_all(points: list[Point], deadline: float, say: Callable[[str], None]) -> list[Played]:
    """Play them until `deadline`; `say` is told of each: . well, o its step never came, else what was wrong."""
    pieces = [points[start : start + PIECE] for start in range(0, len(points), PIECE)]
    context = multiprocessing.get_context("spawn")  # a process that forks the tool must have no thread
    players: dict[Connection, BaseProcess] = {}
    for _ in range(min((os.cpu_count() or 1) + 1, len(pieces))):
        ours, theirs = context.Pipe()
        player: BaseProcess = context.Process(target=_player, args=(theirs,), daemon=True)
        player.start()
        theirs.close()
        players[ours] = player
    played: list[Played] = []
    while players and (left := deadline - time.monotonic()) > 0:
        for connection in wait(list(players), left):
            assert isinstance(connection, Connection)
            try:
                found: list[Played] = connection.recv()
            except EOFError:
                players.pop(connection).join()
                continue
            played += found
            for each in found:
                say("\n".join(("", f"=== {each.point}", *each.wrong, "")) if each.wrong else "." if each.met else "o")
            connection.send(pieces.pop(0) if pieces else [])
    for player in players.values():
        player.terminate()
    return played


def _player(connection: Connection) -> None:
    """Play what comes until nothing more comes. After a point that went wrong, on a pair that is made anew."""
    side, judge = None, None
    connection.send([])
    while piece := connection.recv():
        played = []
        for point in piece:
            if side is None or judge is None:
                side = Side()
                judge = Judge(side)
            played.append(judge.play(point))
            if played[-1].wrong:
                side.close()
                side = None
        connection.send(played)
    if side is not None:
        side.close()
