"""Prompt length by concurrency: what is measured in a cell, its figures, and how long all of it takes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dspark_deploy.capacity.measurements import Sweep as Published
from dspark_deploy.capacity.sweep import Estimate, interpolate
from dspark_deploy.measure.outcome import Outcome

PROMPTS = (256, 2048, 8192, 32768, 131072)
CONCURRENCY = (1, 2, 4, 6)
TRIALS, OUTPUT_TOKENS = 3, 512
COOL_S = 2.0  # between two trials, once the server is quiet
_PREFILL_TPS, _DECODE_TPS = 1300.0, 20.0  # where nothing was published: between a good cell's and a bad one's


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: every prompt length with every concurrency that both fit the server."""

    prompts: tuple[int, ...] = PROMPTS
    concurrency: tuple[int, ...] = CONCURRENCY
    trials: int = TRIALS
    output_tokens: int = OUTPUT_TOKENS
    cool_s: float = COOL_S
    cell_limit_s: float = 1800.0  # of one trial; what has come until then is kept as unfinished

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """(prompt tokens, concurrency), the short prompts first: an early end keeps whole rows."""
        return tuple((prompt, concurrency) for prompt in self.prompts for concurrency in self.concurrency)


@dataclass(frozen=True, slots=True)
class SweepTrial:
    """One trial. Per request, in the order of sending: seconds and tokens a second."""

    ttft_s: tuple[float, ...]
    prefill_tps: tuple[float, ...]
    decode_tps: tuple[float, ...]
    aggregate_tps: float  # all output over the wall time, TTFT included
    wall_s: float
    prompt_tokens: tuple[int, ...]  # as the server counted them
    output_tokens: int
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One prompt length at one concurrency. `exact`: each prompt had so many tokens, by the server's own count."""

    prompt: int
    concurrency: int
    trials: tuple[SweepTrial, ...]
    exact: bool = True
    unfinished: str = ""  # why it has fewer trials than were planned

    @property
    def ttft_s(self) -> float | None:
        """Median over all requests."""
        return _median(each for trial in self.trials for each in trial.ttft_s)

    @property
    def ttft_p95_s(self) -> float | None:
        """95 of 100 requests had their first token by then."""
        values = sorted(each for trial in self.trials for each in trial.ttft_s)
        return values[math.ceil(0.95 * len(values)) - 1] if values else None

    @property
    def prefill_tps(self) -> float | None:
        """Median over all requests; the time in the queue counts."""
        return _median(each for trial in self.trials for each in trial.prefill_tps)

    @property
    def decode_tps(self) -> float | None:
        """Median over all requests, after the first token."""
        return _median(each for trial in self.trials for each in trial.decode_tps)

    @property
    def aggregate_tps(self) -> float | None:
        """Median over the trials."""
        return _median(trial.aggregate_tps for trial in self.trials if trial.output_tokens)

    @property
    def failures(self) -> tuple[str, ...]:
        """Of all trials."""
        return tuple(each for trial in self.trials for each in trial.failures)


def sweep_trial(outcomes: Sequence[Outcome]) -> SweepTrial:
    """The figures of requests that were sent together."""
    good = [each for each in outcomes if each.ok and each.completion_tokens]
    failures = tuple(
        f"{each.failure}: {each.why}" if not each.ok else "shape: the server gave no usage"
        for each in outcomes
        if each not in good
    )
    wall_s = max((each.event_s[-1] for each in good), default=0.0) - min((each.sent_s for each in good), default=0.0)
    output = sum(each.completion_tokens or 0 for each in good)
    return SweepTrial(
        ttft_s=tuple(each.ttft_s for each in good if each.ttft_s is not None),
        prefill_tps=tuple(each.prefill_tps for each in good if each.prefill_tps is not None),
        decode_tps=tuple(each.decode_tps for each in good if each.decode_tps is not None),
        aggregate_tps=output / wall_s if wall_s > 0 else 0.0,
        wall_s=wall_s,
        prompt_tokens=tuple(each.prompt_tokens or 0 for each in good),
        output_tokens=output,
        failures=failures,
    )


def fitting(plan: Plan, *, max_model_len: int | None, most: int | None) -> tuple[Plan, tuple[str, ...]]:
    """The plan as far as it fits the server, and what was left out."""
    prompts = tuple(
        each for each in plan.prompts if max_model_len is None or each + plan.output_tokens <= max_model_len
    )
    concurrency = tuple(each for each in plan.concurrency if most is None or each <= most)
    left_out = [
        f"{each} tokens are more than max_model_len {max_model_len}" for each in plan.prompts if each not in prompts
    ]
    left_out += [
        f"{each} at once are more than {most} sequences" for each in plan.concurrency if each not in concurrency
    ]
    fitted = Plan(prompts, concurrency, plan.trials, plan.output_tokens, plan.cool_s, plan.cell_limit_s)
    return fitted, tuple(left_out)


def budget_s(plan: Plan, published: Published | None, cells: Sequence[tuple[int, int]]) -> float:
    """About how long `cells` take, by a published sweep where there is one."""
    return sum(plan.trials * (_trial_s(plan, published, *cell) + plan.cool_s) for cell in cells)


def _trial_s(plan: Plan, published: Published | None, prompt: int, concurrency: int) -> float:
    found = interpolate(published, prompt, concurrency) if published else None
    if isinstance(found, Estimate) and (seconds := found.answer_s(plan.output_tokens)) is not None:
        return seconds
    return prompt * concurrency / _PREFILL_TPS + plan.output_tokens / _DECODE_TPS


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None
