"""Whom a flow tells what it does. Flows print nothing themselves."""

from __future__ import annotations

from typing import Protocol


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

    def warn(self, text: str) -> None:
        """Something the user should look at, though it stops nothing."""
        ...
