"""Narration on standard error: numbered steps, notes and warnings, and how far a boot is. Never silent for long."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.progress import FIRST_S, SAY_S, Cadence, Panel, progress_line
from dspark_deploy.cli.running import Running

if TYPE_CHECKING:
    from dspark_deploy.boot.events import Event
    from dspark_deploy.watch.progress import BootProgress

BEAT_S = 1.0  # between two looks whether a step that says nothing is to be told of


class Narrator:
    """An Observer for people. Also remembers which steps were begun, for whoever interrupts twice."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._total = 0
        self._number = 0
        self._step = ""
        self._began = self._said = time.monotonic()
        self._open = False  # a step's line has no end yet
        self._running = Running()
        self._cadence = Cadence()
        self._panel: Panel | None = None
        self._lock = threading.RLock()  # what a step in silence says comes from a thread
        self._closed = threading.Event()
        self._beat: threading.Thread | None = None
        if (context := click.get_current_context(silent=True)) is not None:
            context.call_on_close(self.close)  # an error is told on a line of its own

    def begin(self, total: int) -> None:
        """See Observer."""
        self._total, self._number = total, 0

    def started(self, step: str) -> None:
        """See Observer."""
        with self._lock:
            self.end_line()
            self._number += 1
            self._step, self._began = step, time.monotonic()
            self._running.began(step)
            self._say(f"[{self._number}/{self._total}] {step} ...", newline=False)
            self._open = True
        if self._beat is None and not self._quiet:
            self._beat = threading.Thread(target=self._keep_talking, daemon=True)
            self._beat.start()

    def finished(self, detail: str = "") -> None:
        """See Observer."""
        with self._lock:
            self._running.ended()
            seconds = time.monotonic() - self._began
            ending = f"{f' {detail},' if detail else ''} done ({seconds:.1f} s)"
            if self._open:
                self._say(ending)
            else:
                self._say(f"[{self._number}/{self._total}] {self._step}:{ending}")
            self._open, self._step = False, ""

    def note(self, text: str) -> None:
        """See Observer."""
        self._line(f"      {text}")

    def warn(self, text: str) -> None:
        """See Observer."""
        self._line(f"{click.style('[WARN]', fg='yellow')} {text}")

    def progress(self, boot: BootProgress) -> None:
        """See Observer."""
        now_s = time.monotonic()
        if self._quiet or now_s - self._began < FIRST_S:
            return
        with self._lock:
            self._panel = self._panel or Panel()
            if self._panel.possible:
                self._end_step()
                self._said = now_s
                self._panel.show(boot)
            elif self._cadence.due(boot, now_s):
                self._line(f"      {progress_line(boot)}")

    def event(self, event: Event) -> None:
        """See Observer: progress tells it."""

    def what_runs(self) -> str:
        """What may run where this command is ended at once."""
        return self._running.words()

    def end_line(self) -> None:
        """End a step's line that has no end yet, before anything else is written there."""
        with self._lock:
            if self._panel is not None:
                self._panel.hide()
            self._end_step()

    def close(self) -> None:
        """Nothing more is told."""
        self._closed.set()
        self.end_line()

    def _keep_talking(self) -> None:
        while not self._closed.wait(BEAT_S):
            with self._lock:
                now_s = time.monotonic()
                if self._step and now_s - self._said >= SAY_S and not self._closed.is_set():
                    self._line(f"      still: {self._step}, {now_s - self._began:.0f} s so far")

    def _line(self, text: str) -> None:
        with self._lock:
            self.end_line()
            self._say(text)

    def _end_step(self) -> None:
        if self._open:
            self._open = False
            self._say("")

    def _say(self, text: str, *, newline: bool = True) -> None:
        if self._panel is not None:
            self._panel.hide()
        self._said = time.monotonic()
        if self._quiet:
            return
        try:
            click.echo(text, err=True, nl=newline)
        except OSError:
            self._quiet = True  # whoever read this has gone; what is under way goes on
