"""Narration as a stream of events, for programs: one JSON object a line."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from dspark_deploy.cli.envelope import plain
from dspark_deploy.cli.progress import Cadence
from dspark_deploy.cli.running import Running

if TYPE_CHECKING:
    from dspark_deploy.boot.events import Event
    from dspark_deploy.watch.progress import BootProgress


class EventNarrator:
    """An Observer for programs. Each object has `at` (RFC 3339), `event`, and what that kind of event tells.

    Kinds: steps (`total`), step-started (`step`), step-finished (`detail`, `seconds`), note and warning (`text`), and
    boot (`elapsed_s`, `left_s`, `learned_from`, `ranks`), which comes at every phase and at least every ten seconds.
    """

    def __init__(self, *, quiet: bool = False, on_stdout: bool = False) -> None:
        self._quiet = quiet
        self._err = not on_stdout
        self._began = time.monotonic()
        self._running = Running()
        self._cadence = Cadence()

    def begin(self, total: int) -> None:
        """See Observer."""
        self._tell("steps", total=total)

    def started(self, step: str) -> None:
        """See Observer."""
        self._began = time.monotonic()
        self._running.began(step)
        self._tell("step-started", step=step)

    def finished(self, detail: str = "") -> None:
        """See Observer."""
        self._running.ended()
        self._tell("step-finished", detail=detail, seconds=round(time.monotonic() - self._began, 3))

    def note(self, text: str) -> None:
        """See Observer."""
        self._tell("note", text=text)

    def warn(self, text: str) -> None:
        """See Observer."""
        self._tell("warning", text=text)

    def progress(self, boot: BootProgress) -> None:
        """See Observer."""
        if self._cadence.due(boot, time.monotonic()):
            self._tell("boot", **plain(boot))

    def event(self, event: Event) -> None:
        """See Observer: `boot` tells it."""

    def what_runs(self) -> str:
        """What may run where this command is ended at once."""
        return self._running.words()

    def _tell(self, kind: str, **facts: Any) -> None:
        if self._quiet:
            return
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            click.echo(json.dumps({"at": at, "event": kind, **facts}), err=self._err)
        except OSError:
            self._quiet = True  # whoever read this has gone; what is under way goes on
