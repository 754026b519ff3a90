"""The minutes of a run: whoever listens is told as before, and the run's folder keeps what happened."""

from __future__ import annotations

from dataclasses import asdict

from dspark_deploy.boot.events import Event, PhaseEntered, Progress
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.record import Record
from dspark_deploy.watch.progress import BootProgress


class Minutes:
    """See Observer."""

    def __init__(self, observer: Observer, record: Record) -> None:
        self._observer = observer
        self._record = record

    def begin(self, total: int) -> None:
        """See Observer."""
        self._observer.begin(total)

    def started(self, step: str) -> None:
        """See Observer."""
        self._record.event("step-started", {"step": step})
        self._observer.started(step)

    def finished(self, detail: str = "") -> None:
        """See Observer."""
        self._record.event("step-finished", {"detail": detail})
        self._observer.finished(detail)

    def note(self, text: str) -> None:
        """See Observer."""
        self._record.event("note", {"text": text})
        self._observer.note(text)

    def progress(self, boot: BootProgress) -> None:
        """See Observer. The phases are kept as events."""
        self._observer.progress(boot)

    def event(self, event: Event) -> None:
        """See Observer. Bars that move are not kept."""
        if not isinstance(event, Progress):
            facts = asdict(event)
            if isinstance(event, PhaseEntered):
                facts["phase"] = event.phase.label
            self._record.event(_KINDS[type(event).__name__], facts)
        self._observer.event(event)

    def warn(self, text: str) -> None:
        """See Observer."""
        self._record.event("warning", {"text": text})
        self._observer.warn(text)


_KINDS = {
    "BootBegan": "boot-began",
    "PhaseEntered": "phase",
    "Figure": "figure",
    "UnknownVariable": "unknown-variable",
    "Ready": "ready",
    "Found": "found",
    "Resolved": "resolved",
}
