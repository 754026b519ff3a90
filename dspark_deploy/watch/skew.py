"""How far a node's clock is off this machine's: what two logs need before their times can be compared."""

from __future__ import annotations

import time

from dspark_deploy.remote.host import Engine

TRIES = 3


def measure_skew(engine: Engine) -> float:
    """The node's clock less this machine's, in seconds.

    The answer is taken for one of the middle of the question's way there and back; of three questions the quickest
    counts, so that it is exact to half of that one's time, some milliseconds. Raises StepFailed or NodeUnreachable.
    """
    answers = [_ask(engine) for _ in range(TRIES)]
    return min(answers)[1]


def _ask(engine: Engine) -> tuple[float, float]:
    """Seconds that the question took, and the skew by its answer."""
    asked = time.time()
    told = engine.time_s()
    answered = time.time()
    return answered - asked, told - (asked + answered) / 2
