"""Do a sweep's three columns move as they should when prompts grow, and what it means where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from dspark_deploy.measure.sweep import Cell

# The published sweep of one request at a time keeps 86 % of its decode rate from 256 to 131072 tokens, keeps 9 % of its
# aggregate, and its TTFT grows 125-fold (MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark,
# docs/DEEPSEEK_V4_FLASH_0731.md, 2026-08-01).
FLAT = 0.70  # of the shortest prompt's decode rate
NOISE = 0.05  # a column may turn by this much without it meaning anything


@dataclass(frozen=True, slots=True)
class Trend:
    """One column over the prompt lengths of one concurrency."""

    concurrency: int
    column: Literal["ttft", "decode", "aggregate"]
    as_expected: bool
    message: str


def read_trends(cells: Sequence[Cell]) -> tuple[Trend, ...]:
    """Three sentences for each concurrency that was measured at two prompt lengths or more."""
    found: list[Trend] = []
    for concurrency in sorted({cell.concurrency for cell in cells}):
        column = sorted((cell for cell in cells if cell.concurrency == concurrency), key=lambda cell: cell.prompt)
        found += _column(concurrency, [cell for cell in column if cell.decode_tps is not None])
    return tuple(found)


def _column(concurrency: int, cells: Sequence[Cell]) -> Iterator[Trend]:
    if len(cells) < 2:  # noqa: PLR2004  one point has no trend
        return
    first, last = cells[0], cells[-1]
    span = f"from {first.prompt} to {last.prompt} tokens, {concurrency} at once"
    yield _rising(concurrency, span, [cell.ttft_s or 0.0 for cell in cells])
    yield _falling(concurrency, span, [cell.aggregate_tps or 0.0 for cell in cells])
    yield _flat(concurrency, span, (first.decode_tps or 0.0), (last.decode_tps or 0.0))


def _rising(concurrency: int, span: str, values: Sequence[float]) -> Trend:
    rises = all(after >= before * (1 - NOISE) for before, after in pairwise(values))
    words = f"TTFT grows {values[-1] / values[0]:.1f}-fold {span}" if values[0] else f"TTFT {span}"
    why = "" if rises else ": it should only rise; a cached prefix, or other requests meanwhile, would explain less"
    return Trend(concurrency, "ttft", rises, words + why)


def _falling(concurrency: int, span: str, values: Sequence[float]) -> Trend:
    falls = all(after <= before * (1 + NOISE) for before, after in pairwise(values))
    kept = f"{values[-1] / values[0]:.0%}" if values[0] else "nothing"
    why = "; it holds the time to the first token, so it has to fall"
    if not falls:
        why = ": it should only fall, since it holds the time to the first token; repeat the cell that rises"
    return Trend(concurrency, "aggregate", falls, f"the aggregate keeps {kept} {span}{why}")


def _flat(concurrency: int, span: str, first: float, last: float) -> Trend:
    kept = last / first if first else 0.0
    flat = kept >= FLAT
    words = f"decode keeps {kept:.0%} {span}"
    if flat:
        return Trend(concurrency, "decode", True, f"{words}: flat, as sparse attention should be")
    if concurrency == 1:
        why = (
            ": it should stay flat. One request alone that decodes slower over a long context reads all of it at every "
            "step: look for the image's sparse path and its kernels for long contexts (the head's log), and for memory "
            "that swaps"
        )
        return Trend(concurrency, "decode", False, words + why)
    why = (
        ": with several at once this is expected of schedulers that let a long prefill share each step with decoding; "
        "compare with one at once, and with the published sweep"
    )
    return Trend(concurrency, "decode", True, words + why)
