"""A bar for work that lasts longer than a second. On a terminal only: elsewhere nobody watches it move."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from dspark_deploy.flow.scan import Counted

WAIT_S = 1.0
TURN_S = 0.1


class Meter:
    """Shows how far a scan is."""

    def __init__(self, *, quiet: bool = False, now: Callable[[], float] = time.monotonic) -> None:
        self._visible = not quiet and sys.stderr.isatty()
        self._now = now
        self._next = now() + WAIT_S
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, counted: Counted) -> None:
        """Called at every turn of the work."""
        if not self._visible or self._now() < self._next:
            return
        self._next = self._now() + TURN_S
        if self._bar is None:
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task("", total=1.0)
        said = f"{counted.files} files, {counted.bytes / 1e6:.0f} MB, {counted.tokens:.0f} tokens"
        if self._task is not None:
            self._bar.update(self._task, completed=counted.share, description=said)
            self._bar.refresh()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("counting"), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
