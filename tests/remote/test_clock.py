"""A signal ends a wait, wherever it comes."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from dspark_deploy.errors import Interrupted
from dspark_deploy.remote import clock
from dspark_deploy.remote.clock import Interruption, SystemClock

LONG_S = 60.0
HELD_UP_S = 5.0


@contextmanager
def signal_at(line: int) -> Iterator[list[str]]:
    """Send SIGTERM to this process before the given line that runs, those of the standard library counted too."""
    ran: list[str] = []

    def trace(frame: FrameType, event: str, _: object) -> object:
        if frame.f_code.co_filename not in {clock.__file__, threading.__file__} or frame.f_code.co_name == "_on_signal":
            return None
        if event == "line":
            ran.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
            if len(ran) == line:
                signal.raise_signal(signal.SIGTERM)
        return trace

    def held_up(*_: object) -> None:
        pytest.fail(f"the wait stands after {ran[-1]}")

    before = signal.signal(signal.SIGALRM, held_up)
    signal.setitimer(signal.ITIMER_REAL, HELD_UP_S)
    sys.settrace(trace)  # type: ignore[arg-type]  # typeshed wants a protocol that a plain function does not match
    try:
        yield ran
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_signal_is_heard_wherever_in_the_wait_it_comes() -> None:
    lines = 0
    with Interruption() as interruption, signal_at(0) as ran:
        SystemClock(interruption).sleep(0)
    for lines in range(1, len(ran) + 1):
        with (
            Interruption() as interruption,
            signal_at(lines),
            pytest.raises(Interrupted, match="interrupted by SIGTERM"),
        ):
            SystemClock(interruption).sleep(LONG_S)
    assert lines > 3, ran


def test_without_a_signal_a_wait_ends_when_it_is_over() -> None:
    with Interruption() as interruption:
        SystemClock(interruption).sleep(0.01)


def test_a_signal_between_two_waits_ends_the_next() -> None:
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGHUP)
        with pytest.raises(Interrupted, match="SIGHUP"):
            SystemClock(interruption).sleep(LONG_S)


def test_work_that_is_shielded_waits_to_its_end() -> None:
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        SystemClock(interruption).shielded().sleep(0.01)
