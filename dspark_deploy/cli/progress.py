"""How far a boot is, for people: a panel that is redrawn on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.progress_bar import ProgressBar

    from dspark_deploy.watch.progress import BootProgress, RankProgress

FIRST_S = 1.0  # into a step: what is over before then is told by its own line
CHANGE_S = 1.0  # between two lines of which the second tells of another phase
SAY_S = 8.0  # between two lines of which it does not: nobody waits ten seconds for a word
QUIET_S = 10.0  # a rank that prints nothing for so long is told of
REDRAW_S = 0.25
BAR_CELLS = 20
WIDE = 100  # columns from which on there is room for the bars


class Cadence:
    """When the next line is due."""

    def __init__(self) -> None:
        self._said_s: float | None = None
        self._phases: tuple[str | None, ...] = ()

    def due(self, boot: BootProgress, now_s: float) -> bool:
        """Whether this is worth a line. The caller then prints it."""
        phases = tuple(rank.phase for rank in boot.ranks)
        since_s = now_s - self._said_s if self._said_s is not None else SAY_S
        if since_s < (CHANGE_S if phases != self._phases else SAY_S):
            return False
        self._said_s, self._phases = now_s, phases
        return True


def progress_line(boot: BootProgress) -> str:
    """`12:03:07 +0:42 head loading weights 31 % for 0:20 (usually 2:32), worker ...; about 4:10 left`."""
    ranks = ", ".join(_clause(rank) for rank in boot.ranks)
    return f"{time.strftime('%H:%M:%S')} +{clock(boot.elapsed_s)} {ranks}; {_left(boot)}"


def clock(seconds: float) -> str:
    """Minutes and seconds: `4:07`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _clause(rank: RankProgress) -> str:
    if rank.ready:
        return f"{rank.node} ready"
    usually = f" (usually {clock(rank.usual_s)})" if rank.usual_s >= 1 else ""
    silence = _silence(rank)
    return f"{rank.node} {_doing(rank)} for {clock(rank.in_phase_s)}{usually}{f', {silence}' if silence else ''}"


def _doing(rank: RankProgress) -> str:
    return f"{rank.title} {rank.percent} %" if rank.percent is not None else rank.title


def _silence(rank: RankProgress) -> str:
    """What a rank that prints nothing for long is told of; empty where it prints."""
    if rank.ready or rank.quiet_s < QUIET_S:
        return ""
    normal = "normal up to" if rank.quiet_s <= rank.quiet_limit_s else "longer than the usual"
    return f"silent for {clock(rank.quiet_s)}, {normal} {clock(rank.quiet_limit_s)}"


def _left(boot: BootProgress) -> str:
    if all(rank.ready for rank in boot.ranks) and len(boot.ranks) > 1:
        return "both are ready, the API is asked"
    runs = boot.learned_from
    by = "as published" if not runs else f"as in {runs} earlier run{'s' if runs > 1 else ''}"
    return f"about {clock(boot.left_s)} left, {by}"


class Panel:
    """Both ranks side by side at the lower end of a terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console: Console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._drawn_s = 0.0

    @property
    def possible(self) -> bool:
        """Whether there is a terminal that can redraw."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def show(self, boot: BootProgress) -> None:
        """Draw it, or draw it anew."""
        from rich.live import Live

        now_s = time.monotonic()
        if self._live is not None and now_s - self._drawn_s < REDRAW_S:
            return
        self._drawn_s = now_s
        drawn = drawing(boot, self._console)
        if self._live is None:
            self._live = Live(drawn, console=self._console, auto_refresh=False, transient=True)
            self._live.start(refresh=True)
        else:
            self._live.update(drawn, refresh=True)

    def hide(self) -> None:
        """Take it away, before anything else is written there."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def drawing(boot: BootProgress, console: Console) -> RenderableType:
    """A table with a row a rank, and what there is to say below it."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for rank in boot.ranks:
        share = rank.elapsed_s / total if (total := rank.elapsed_s + rank.left_s) and not rank.ready else 1.0
        bar = [_bar(share)] if console.width >= WIDE else []
        times = "" if rank.ready else f"{clock(rank.in_phase_s)} of {clock(rank.usual_s)}"
        left = "done" if rank.ready else f"{clock(rank.left_s)} left"
        doing = "ready" if rank.ready else _doing(rank)
        table.add_row(
            Text(rank.node, style="bold"), doing, *bar, f"{share:.0%} of boot", Text(times, style="dim"), left
        )
    words = [f"{rank.node}: {silence}" for rank in boot.ranks if (silence := _silence(rank))]
    head = Text(f"booting for {clock(boot.elapsed_s)}, {_left(boot)}")
    return Group(head, table, *(Text(word, style="yellow") for word in words))


def _bar(share: float) -> ProgressBar:
    from rich.progress_bar import ProgressBar

    return ProgressBar(total=1.0, completed=share, width=BAR_CELLS)
