"""How far both pulls are, on standard error: bars on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

if TYPE_CHECKING:
    from dspark_deploy.facts.pull import PullProgress

LINE_S = 10.0  # between two lines of one node where there is no terminal


class Pulls:
    """Both nodes' progress. `tell` is called from both nodes' threads."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bars = Progress(*columns, console=self._console, transient=True)
        self._tasks: dict[str, TaskID] = {}
        self._said: dict[str, float] = {}
        self._notes: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bars.stop()

    def tell(self, node: str, progress: PullProgress) -> None:
        """Show how far a node is, and once what it waits for."""
        if progress.note and progress.note.partition(":")[0] != self._notes.get(node):
            self._notes[node] = progress.note.partition(":")[0]
            self._console.print(f"{node}: {progress.note}", highlight=False, soft_wrap=True)
        if self._console.is_terminal:
            self._show(node, progress)
        else:
            self._say(node, progress)

    def _show(self, node: str, progress: PullProgress) -> None:
        if node not in self._tasks:
            self._tasks[node] = self._bars.add_task(node, total=None)
        told = f"{node:<6} {progress.ready}/{progress.layers} layers"
        total = progress.total_bytes or None
        self._bars.update(self._tasks[node], completed=progress.done_bytes, total=total, description=told)

    def _say(self, node: str, progress: PullProgress) -> None:
        now = time.monotonic()
        if now - self._said.setdefault(node, now - LINE_S) < LINE_S:
            return
        self._said[node] = now
        megabytes = f"{progress.done_bytes / 1e6:.0f} of {progress.total_bytes / 1e6:.0f} MB so far"
        line = f"{node}: {megabytes}, {progress.ready} of {progress.layers} layers ready"
        self._console.print(line, highlight=False, soft_wrap=True)
