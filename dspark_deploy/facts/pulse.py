"""Whether a rank works although it prints nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COMPILERS = frozenset({"nvcc", "cicc", "ptxas", "fatbinary", "nvlink", "cc1plus", "ninja", "c++", "g++", "gcc", "ld"})
STILL_SHARE = 0.02  # of one core: what a process that waits for ever still uses for its timers
STILL_S = 1.5  # the engine tells a process's CPU time in whole seconds


@dataclass(frozen=True, slots=True)
class Pulse:
    """What one rank has used and made so far. See remote/programs/pulse.py."""

    cpu_s: float | None  # of all its processes; None: it can't be read
    compilers: tuple[str, ...] = ()  # that run now
    caches: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # folder -> bytes, files
    unread: Mapping[str, str] = field(default_factory=dict)  # what could not be read -> why


def parse_pulse(document: Mapping[str, Any]) -> Pulse:
    """What the program answered."""
    processes = document["processes"]
    return Pulse(
        cpu_s=None if processes is None else float(sum(each["cpu_s"] for each in processes)),
        compilers=tuple(sorted({each["command"] for each in processes or [] if each["command"] in COMPILERS})),
        caches={folder: (each["bytes"], each["files"]) for folder, each in document["caches"].items()},
        unread=dict(document["unread"]),
    )


def moved(before: Pulse, after: Pulse, seconds: float) -> bool:
    """Whether the rank did anything in the `seconds` between."""
    if after.compilers or dict(before.caches) != dict(after.caches):
        return True
    if before.cpu_s is None or after.cpu_s is None:
        return False
    used_s = after.cpu_s - before.cpu_s
    return used_s < 0 or used_s > max(STILL_S, STILL_SHARE * seconds)  # below zero: a process ended, with its time
