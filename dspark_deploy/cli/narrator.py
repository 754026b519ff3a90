"""Narration on standard error: numbered steps, notes and warnings."""

from __future__ import annotations

import time

import click


class Narrator:
    """An Observer for people. Also remembers which steps were begun, for whoever interrupts twice."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._total = 0
        self._number = 0
        self._step = ""
        self._began = 0.0
        self._open = False  # a step's line has no end yet
        self._changed: list[str] = []

    def begin(self, total: int) -> None:
        """See Observer."""
        self._total, self._number = total, 0

    def started(self, step: str) -> None:
        """See Observer."""
        self._number += 1
        self._step, self._began = step, time.monotonic()
        if step.startswith(("start ", "stop ")):
            self._changed.append(step)
        self._say(f"[{self._number}/{self._total}] {step} ...", newline=False)
        self._open = True

    def finished(self, detail: str = "") -> None:
        """See Observer."""
        seconds = time.monotonic() - self._began
        ending = f"{f' {detail},' if detail else ''} done ({seconds:.1f} s)"
        if self._open:
            self._say(ending)
        else:
            self._say(f"[{self._number}/{self._total}] {self._step}:{ending}")
        self._open = False

    def note(self, text: str) -> None:
        """See Observer."""
        self._line(f"      {text}")

    def warn(self, text: str) -> None:
        """See Observer."""
        self._line(f"{click.style('[WARN]', fg='yellow')} {text}")

    def what_runs(self) -> str:
        """The steps begun so far that change what runs, for a command that is ended at once."""
        return ", ".join(self._changed)

    def _line(self, text: str) -> None:
        if self._open:
            self._say("")
            self._open = False
        self._say(text)

    def end_line(self) -> None:
        """End a step's line that has no end yet, before anything else is written there."""
        if self._open:
            self._open = False
            self._say("")

    def _say(self, text: str, *, newline: bool = True) -> None:
        if self._quiet:
            return
        try:
            click.echo(text, err=True, nl=newline)
        except OSError:
            self._quiet = True  # whoever read this has gone; what is under way goes on
