"""How long a boot still takes: learned from earlier boots of the same profile, else from a published one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dspark_deploy.boot.events import Node
from dspark_deploy.boot.phases import ABOUT, Phase

Durations = Mapping[Phase, float]  # seconds from entering a phase to entering the next one


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """`late_s`: how much longer than usual the phase at hand takes already; 0 while it is within its time."""

    seconds: float
    late_s: float


def published(node: Node) -> dict[Phase, float]:
    """The published boot's durations of one rank (see phases.py): 5:06 in all, 2:29 of it loading weights."""
    return {phase: about.head_s if node == "head" else about.worker_s for phase, about in ABOUT.items()}


def learned(runs: Sequence[Durations], otherwise: Durations) -> dict[Phase, float]:
    """The median of each phase over earlier runs; a phase that none of them knows keeps its duration of `otherwise`."""
    return {
        phase: statistics.median(known) if (known := [run[phase] for run in runs if phase in run]) else seconds
        for phase, seconds in otherwise.items()
    }


def time_left(
    phase: Phase | None, in_phase_s: float, durations: Durations, *, percent: int | None = None, last: Phase
) -> TimeLeft:
    """From a phase, the seconds spent in it, and its progress bar where it has one, to the entry of `last`.

    A bar beats the usual duration once it has moved: half a bar in 60 s leaves 60 s, whatever the disk did last time.
    """
    reached = phase if phase is not None else Phase.PREPARATION
    if reached >= last:
        return TimeLeft(0.0, 0.0)
    usual_s = durations.get(reached, 0.0)
    if percent is not None and 0 < percent <= 100:  # noqa: PLR2004  per cent
        here_s = in_phase_s * (100 - percent) / percent
        late_s = max(0.0, in_phase_s + here_s - usual_s) if usual_s else 0.0
    else:
        here_s = max(0.0, usual_s - in_phase_s)
        late_s = max(0.0, in_phase_s - usual_s)
    later_s = sum(seconds for later, seconds in durations.items() if reached < later < last)
    return TimeLeft(here_s + later_s, late_s)
