"""Decode rates by the published method, from the times of events alone: no request is made here.

Streaming, 512 tokens a request, temperature 0, three trials; prefill and the first token are left out:

    stream rate  = (completion tokens - 1) / (last - first)            of each request
    aggregate    = sum(completion tokens - 1) / (latest last - earliest first)
    reported     = the trial whose aggregate is the median

Source of the method: the decode-only table in MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark, README.md at 8b659a9.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dspark_deploy.facts.metrics import Acceptance, Between
from dspark_deploy.measure.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial of so many requests at once. Rates are tokens a second."""

    aggregate_tps: float
    mean_stream_tps: float
    stream_tps: tuple[float, ...]
    window_s: float  # earliest first token to latest last one
    tokens: int  # completion tokens less each request's first
    ttft_s: tuple[float, ...]
    acceptance: Acceptance | None = None
    foreign_tokens: int = 0  # generated meanwhile for somebody else
    preemptions: int = 0
    failures: tuple[str, ...] = ()  # why requests failed; their tokens are in no figure


@dataclass(frozen=True, slots=True)
class Lane:
    """All trials at one concurrency."""

    concurrency: int
    trials: tuple[Trial, ...]

    @property
    def median(self) -> Trial | None:
        """The trial with the median aggregate, of an even number the lower middle one; None where all failed."""
        good = sorted((each for each in self.trials if each.tokens), key=lambda each: each.aggregate_tps)
        return good[(len(good) - 1) // 2] if good else None

    @property
    def spread(self) -> float:
        """Half the distance between best and worst aggregate, as a share of the median: the noise."""
        rates = [each.aggregate_tps for each in self.trials if each.tokens]
        return (max(rates) - min(rates)) / 2 / statistics.median(rates) if rates else 0.0


def trial_of(outcomes: Sequence[Outcome], counted: Between | None = None) -> Trial:
    """The figures of one trial. A request that failed or was not counted by the server is named, not averaged in."""
    failures = tuple(_why(each) for each in outcomes if not _counts(each))
    good = [each for each in outcomes if _counts(each)]
    if not good:
        return Trial(0.0, 0.0, (), 0.0, 0, (), failures=failures)
    window_s = max(each.event_s[-1] for each in good) - min(each.event_s[0] for each in good)
    tokens = sum((each.completion_tokens or 0) - 1 for each in good)
    rates = tuple(each.decode_tps or 0.0 for each in good)
    ours = sum(each.completion_tokens or 0 for each in outcomes)
    return Trial(
        aggregate_tps=tokens / window_s,
        mean_stream_tps=statistics.fmean(rates),
        stream_tps=rates,
        window_s=window_s,
        tokens=tokens,
        ttft_s=tuple(each.ttft_s or 0.0 for each in good),
        acceptance=counted.acceptance if counted else None,
        foreign_tokens=max(0, counted.generated_tokens - ours) if counted and not failures else 0,
        preemptions=counted.preemptions if counted else 0,
        failures=failures,
    )


def _counts(outcome: Outcome) -> bool:
    return outcome.ok and outcome.decode_tps is not None


def _why(outcome: Outcome) -> str:
    if not outcome.ok:
        return f"{outcome.failure}: {outcome.why}"
    if outcome.completion_tokens is None:
        return "shape: the server gave no usage, and events are no tokens"
    return f"shape: {outcome.completion_tokens} tokens in {len(outcome.event_s)} events give no rate"
