"""`python -m tests.sweep [WORD...]`: each command that changes a pair, stopped after each step in each way there is.

`nodes.py` is an embedded pair in a process of its own that can be broken; `steps.py` numbers what is done on it, and
holds a step's answer back when told to. `side.py` drives the pair and runs the tool beside it; `points.py` says what is
stopped where; `judge.py` plays one point and holds it to what was promised; `players.py` plays several at once;
`twice.py` is two runs at once. Words pick the points whose name has all of them.

Prints what was wrong, and how many points were tried. Exit 1 where anything was wrong, 2 where the time was over.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence

from .judge import Judge, Played
from .players import COUNT, PIECE, Players
from .points import COMMANDS, WAYS, Point
from .side import Side
from .twice import ROUNDS, Twice

LIMIT_S = 12 * 60.0


def main(words: Sequence[str]) -> int:
    """Play them all."""
    began = time.monotonic()
    twice = None if words else Twice()
    players = None if words else Players(COUNT)
    points = _points(words)
    _say(f"{len(points)} points\n")
    if players is None:
        players = Players(min(COUNT, -(-len(points) // PIECE)))
    played = players.play(points, began + LIMIT_S, _say)
    at_once = twice.wrong() if twice else []
    _say("".join(f"\n\n=== {said}" for said in at_once))
    wrong = [each for each in played if each.wrong]
    _print_counts(played, time.monotonic() - began)
    if len(played) < len(points):
        _say(f"{len(points) - len(played)} points were not tried within {LIMIT_S:g} s\n")
        return 2
    if twice and not at_once:
        _say(f"two runs at once, {ROUNDS} times: each time one won and one met the lock\n")
    return 1 if wrong or at_once else 0


def _points(words: Sequence[str]) -> list[Point]:
    """Those that `words` pick, from undisturbed runs of the commands that they name, or of all."""
    commands = [command for command in COMMANDS if command in words] or COMMANDS
    side = Side()
    try:
        judge = Judge(side)
        points = [point for command in commands for point in judge.points(command)]
    finally:
        side.close()
    return [point for point in points if set(words) <= {*str(point).replace(",", "").replace(":", "").split()}]


def _print_counts(played: Sequence[Played], seconds: float) -> None:
    tried = Counter((each.point.command, each.point.way) for each in played)
    lines = ["", f"{'':<10}" + "".join(f"{way:>13}" for way in WAYS)]
    lines += [f"{command:<10}" + "".join(f"{tried[command, way]:>13}" for way in WAYS) for command in COMMANDS]
    wrong, missed = sum(bool(each.wrong) for each in played), sum(not each.met for each in played)
    lines += [
        f"{len(played)} points tried: {wrong} wrong; {missed} ended before their step came",
        f"{seconds:.0f} s, and {_cpu_s() / max(len(played), 1):.1f} s of CPU time a point",
        "",
    ]
    _say("\n".join(lines))


def _cpu_s() -> float:
    """Of this process and of all that it has waited for: a machine that has other work shows in the seconds alone."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
