"""Time and interruption, passed in wherever something waits, so that no test waits and every wait can be ended."""

from __future__ import annotations

import math
import os
import select
import signal
import time
import weakref
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Protocol, Self

from dspark_deploy.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Clock(Protocol):
    """Where a wait gets its time from."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; raises Interrupted as soon as the user asks to end."""
        ...

    def shielded(self) -> Clock:
        """The same time, for work that must not be left half-done: its waits are not ended."""
        ...


class SystemClock:
    """Real time. Signals reach it through an Interruption."""

    def __init__(self, interruption: Interruption | None = None) -> None:
        self._interruption = interruption

    def now(self) -> float:
        """See Clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        if self._interruption is None:
            time.sleep(seconds)
        else:
            self._interruption.wait(seconds)

    def shielded(self) -> Clock:
        """See Clock."""
        return SystemClock()


class Latch:
    """Set once and for all, by a signal handler too.

    threading.Event can't be: a handler that comes while its own thread is about to wait needs the lock which that
    thread holds, and stands for ever.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        weakref.finalize(self, _close, self._reader, self._writer)

    def set(self) -> None:
        """End every wait, now and later."""
        os.write(self._writer, b"!")  # never read: it stays so

    def wait(self, seconds: float) -> bool:
        """Wait for it no longer than that; whether it is set."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        return bool(poll.poll(math.ceil(seconds * 1000)))


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


class Interruption:
    """Turns Ctrl-C, SIGTERM and SIGHUP into one orderly end. A SIGHUP that is ignored stays so: `nohup` means it.

    The first signal ends the next breakable wait, so that a step on a node is never torn in the middle. A second
    one raises where the program stands; `what_runs` then says what may be left.
    """

    def __init__(self, what_runs: Callable[[], str] = lambda: "") -> None:
        self._asked = Latch()
        self._name = ""
        self._what_runs = what_runs
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # typeshed has no name for what signal() returns

    def describe_with(self, what_runs: Callable[[], str]) -> None:
        """From now on, `what_runs` says what a second signal would leave behind."""
        self._what_runs = what_runs

    def wait(self, seconds: float) -> None:
        """Sleep; raises Interrupted at once when a signal came or comes."""
        if self._asked.wait(seconds):
            raise Interrupted(f"interrupted by {self._name}", remedy="run the command again when you are ready")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._asked.wait(0):
            left = self._what_runs()
            raise Interrupted(
                "interrupted again: ended at once",
                why=f"may still run: {left}" if left else "",
                remedy="`dspark status` shows what is left, `dspark down` clears it",
            )
        self._name = signal.Signals(number).name
        self._asked.set()
