"""Whom a flow tells what it does. Flows print nothing themselves."""

from __future__ import annotations

from typing import Protocol

from dspark_deploy.boot.events import Event
from dspark_deploy.watch.progress import BootProgress


class Observer(Protocol):
    """Narration. Standard output belongs to the report; this goes to standard error or nowhere."""

    def begin(self, total: int) -> None:
        """So many steps follow."""
        ...

    def started(self, step: str) -> None:
        """A step begins."""
        ...

    def finished(self, detail: str = "") -> None:
        """It ended well; `detail` says what it found or changed."""
        ...

    def note(self, text: str) -> None:
        """Something worth knowing while a step runs."""
        ...

    def progress(self, boot: BootProgress) -> None:
        """How far both ranks are: several times a second while a boot is waited for."""
        ...

    def event(self, event: Event) -> None:
        """What a rank's log said: a phase, a figure, a failure. For records; progress tells it to people."""
        ...

    def warn(self, text: str) -> None:
        """Something the user should look at, though it stops nothing."""
        ...
