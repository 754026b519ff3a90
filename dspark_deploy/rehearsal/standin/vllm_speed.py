"""How long things take on a real pair, for a stand-in that is told to follow it (switch `time_scale`).

Boot: one boot of Anemll's image 0.1.1 with warm caches, 306 s (Anemll/dspark-vllm-gx10, branch dspark-nvfp4-a4w4 at
e8942c6, 2026-07-18). Requests: the prompt x concurrency sweep of 2026-08-01 of the 0731 checkpoint (MiaAI-Lab/
DeepSeek-v4-Flash-DSpark-2x-DGX-Spark, results/deepseek-v4-flash-0731-2x-dgx-spark.json), and for Stage-C the decode
rates of its 200K profile of 16 sequences (README.md at 8b659a9); no prefill figures were published for that one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Seconds of a phase on the head and on the worker. What is not named takes no time worth showing.
BOOT_S = {
    "engine": (4.0, 1.0),
    "rendezvous": (3.0, 4.0),
    "nccl": (4.0, 4.0),
    "load": (2.0, 2.0),
    "shards": (141.71, 97.02),
    "draft": (53.0, 42.0),
    "loaded": (3.0, 3.0),
    "profile": (32.0, 32.0),
    "warmup": (36.0, 36.0),
    "capture": (12.0, 12.0),
    "ready": (7.0, 7.0),
    "server": (4.0, 0.0),
}


class Row(NamedTuple):
    """One measured point. Prompt in tokens, concurrency in requests, decode in tokens a second and stream."""

    prompt: int
    concurrency: int
    ttft_s: float
    decode_tps: float


SWEEP = tuple(
    Row(*row)
    for row in (
        (256, 1, 0.63, 75.4),
        (256, 2, 0.81, 58.3),
        (256, 4, 1.26, 46.8),
        (256, 6, 1.42, 36.9),
        (2048, 1, 0.81, 68.8),
        (2048, 2, 1.11, 57.0),
        (2048, 4, 1.38, 44.0),
        (2048, 6, 6.06, 34.7),
        (8192, 1, 4.80, 73.9),
        (8192, 2, 7.51, 49.8),
        (8192, 4, 14.50, 37.4),
        (8192, 6, 18.38, 23.6),
        (32768, 1, 22.96, 64.0),
        (32768, 2, 26.82, 41.5),
        (32768, 4, 44.85, 17.4),
        (32768, 6, 60.75, 10.8),
        (131072, 1, 78.75, 65.2),
        (131072, 2, 111.17, 30.9),
    )
)
STAGE_C_DECODE_TPS = {1: 57.6, 4: 35.2, 8: 31.6, 16: 19.7}


def boot_s(phase: str, rank: int) -> float:
    """How long a phase takes on a rank."""
    return BOOT_S.get(phase, (0.0, 0.0))[0 if rank == 0 else 1]


def nearest(family: str, prompt: int, concurrency: int) -> Row:
    """The measured point nearest to a request: the prompt's length first (by its ratio), then the concurrency."""
    row = min(
        SWEEP,
        key=lambda each: (abs(math.log(each.prompt / max(1, prompt))), abs(each.concurrency - concurrency)),
    )
    if family != "stage-c":
        return row
    close = min(STAGE_C_DECODE_TPS, key=lambda each: abs(each - concurrency))
    return Row(row.prompt, row.concurrency, row.ttft_s, STAGE_C_DECODE_TPS[close])
