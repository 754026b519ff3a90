"""Numbers that a boot log shows and that follow from the arguments."""

from __future__ import annotations

from itertools import pairwise

GPU_GIB = 121.63  # unified memory as the GPU reports it
RESIDENT_GIB = 85.3  # weights of a rank, workspaces and graphs
TOKENS_PER_GIB = {65_536: 18_521, 350_000: 74_414, 1_048_576: 137_913}  # of the pool, measured by maximum length
CAPTURE_GRID: tuple[int, ...] = (1, 2, 4, *range(8, 256, 8), *range(256, 513, 16))
FULL_BUDGET = 8192  # tokens a step; nothing is said about one that is not below it
PROGRESS_EVERY_S = 0.5


def kv_gib(utilization: float, rank: int) -> float:
    """Memory that is left for the KV cache on a rank."""
    return utilization * GPU_GIB - RESIDENT_GIB - 0.4 * rank


def pool_tokens(gib: float, length: int) -> int:
    """Tokens in that memory: between the measured lengths on a straight line, beyond them as at the nearest one."""
    points = sorted(TOKENS_PER_GIB.items())
    rate = float(points[0][1] if length < points[0][0] else points[-1][1])
    for (low, at_low), (high, at_high) in pairwise(points):
        if low <= length <= high:
            rate = at_low + (at_high - at_low) * (length - low) / (high - low)
    return int(gib * rate)


def on_grid(capture_size: int) -> int:
    """The capture size that the runtime makes of a wish."""
    fitting = [point for point in CAPTURE_GRID if point <= max(1, capture_size)]
    return fitting[-1]


def scheduled_tokens(batched: int, sequences: int, drafts: int) -> int:
    """What drafts leave of a step's token budget."""
    return batched - sequences * (drafts - 1)


def progress(done: int, total: int, seconds: float) -> str:
    """A progress bar's text, as the weight loader formats it."""
    left = seconds * (total - done) / done
    clock = f"{_clock(seconds)}<{_clock(left)}, {done / max(seconds, 0.01):5.2f}it/s"
    return f"{100 * done // total:3d}% Completed | {done}/{total} [{clock}]"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
