"""Ask as the published decode benchmark asks. The figures are decode.py's."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.facts.metrics import between
from dspark_deploy.measure.counters import read_counters
from dspark_deploy.measure.decode import Lane, Trial, trial_of
from dspark_deploy.measure.outcome import Outcome, Request
from dspark_deploy.measure.side import Side, is_quiet

Arrivals = Literal["static", "staggered"]
TOKENS, TRIALS = 512, 3
CONCURRENCY = (1, 2, 3, 4, 5, 6)
STAGGER_S = 0.5  # between two arrivals
WARM_UP_TOKENS = 32

_SUBJECTS = (
    "how two computers share one large model",
    "why a cache makes a program faster",
    "how a river shapes its valley",
    "what a lighthouse keeper does in a storm",
    "how bread dough rises and what can go wrong",
    "why ships are measured in tons",
)


@dataclass(frozen=True, slots=True)
class Method:
    """What is asked. The defaults are the published method."""

    concurrency: tuple[int, ...] = CONCURRENCY  # empty: these as far as the pair runs so many
    trials: int = TRIALS
    tokens: int = TOKENS
    arrivals: Arrivals = "static"
    stagger_s: float = STAGGER_S


async def bench_decode(side: Side, method: Method, say: Callable[[str], None]) -> tuple[Lane, ...]:
    """Every concurrency in turn, each with its trials. `say` is told each trial's figures."""
    await _one(side, next(_requests(side, 1, WARM_UP_TOKENS)), 0.0)
    lanes = []
    for concurrency in method.concurrency:
        trials = []
        for number in range(1, method.trials + 1):
            trials.append(await _trial(side, concurrency, method))
            say(f"{concurrency} at once, trial {number} of {method.trials}: {_words(trials[-1])}")
        lanes.append(Lane(concurrency, tuple(trials)))
    return tuple(lanes)


async def _trial(side: Side, concurrency: int, method: Method) -> Trial:
    await is_quiet(side)
    step_s = method.stagger_s if method.arrivals == "staggered" else 0.0
    requests = _requests(side, concurrency, method.tokens)
    before = await read_counters(side.client)
    outcomes: Sequence[Outcome] = await asyncio.gather(
        *(_one(side, request, number * step_s) for number, request in enumerate(requests))
    )
    return trial_of(outcomes, between(before, await read_counters(side.client)))


async def _one(side: Side, request: Request, after_s: float) -> Outcome:
    await asyncio.sleep(after_s)
    return await side.client.stream(request)


def _requests(side: Side, count: int, tokens: int) -> Iterator[Request]:
    """Each with a nonce of its own in front, so that no two share a prefix, within a trial or across them."""
    for number in range(count):
        nonce = secrets.token_hex(4)
        prompt = f"[{nonce}] Write a detailed essay about {_SUBJECTS[number % len(_SUBJECTS)]}."
        yield Request(f"stream {number + 1}", side.chat(prompt, tokens=tokens, whole=True), nonce=nonce)


def _words(trial: Trial) -> str:
    if not trial.tokens:
        return f"nothing to measure; {trial.failures[0] if trial.failures else 'no request'}"
    words = f"{trial.aggregate_tps:.1f} tok/s in all, {trial.mean_stream_tps:.1f} a stream"
    if trial.acceptance:
        words += f", {trial.acceptance.rate:.1%} of drafts accepted"
    return words + (f", {len(trial.failures)} failed" if trial.failures else "")
