"""How far hashing is, on standard error: bars on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from dspark_deploy.checks.cache_words import size_text

if TYPE_CHECKING:
    from dspark_deploy.facts.snapshot import Progress as Hashed

LINE_S = 10.0  # between two lines of one node where there is no terminal


class Bars:
    """Both nodes' progress. `tell` is called from both nodes' threads."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        columns = (TextColumn("{task.description:<6}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bars = Progress(*columns, TimeRemainingColumn(), console=self._console, transient=True)
        self._tasks: dict[str, TaskID] = {}
        self._began: dict[str, float] = {}
        self._said: dict[str, float] = {}

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bars.stop()

    def tell(self, node: str, hashed: Hashed) -> None:
        """Show how far a node is."""
        if not self._console.is_terminal:
            self._say(node, hashed)
        elif node not in self._tasks:
            # What earlier runs hashed is no speed of this one: it counts as done from the start.
            self._tasks[node] = self._bars.add_task(node, total=hashed.total_bytes, completed=hashed.known_bytes)
        else:
            self._bars.update(self._tasks[node], completed=hashed.done_bytes)

    def _say(self, node: str, hashed: Hashed) -> None:
        now = time.monotonic()
        began = self._began.setdefault(node, now)
        ended = hashed.done_bytes == hashed.total_bytes
        if now - self._said.get(node, 0.0) < LINE_S and not ended:
            return
        self._said[node] = now
        speed = (hashed.done_bytes - hashed.known_bytes) / (now - began) if now > began else 0.0
        line = f"{node}: {size_text(hashed.done_bytes)} of {size_text(hashed.total_bytes)} hashed"
        if speed and not ended:
            left_s = (hashed.total_bytes - hashed.done_bytes) / speed
            line += f", {size_text(int(speed))} a second, {left_s:.0f} s left"
        self._console.print(line, highlight=False, soft_wrap=True)
