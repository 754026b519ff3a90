"""Does it fit, and how fast is it: what is known of a piece of work on a profile, measured and interpolated apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.capacity.measurements import Conditions, Sweep
from dspark_deploy.capacity.pool import Pool
from dspark_deploy.capacity.sweep import Estimate, NoNumber, interpolate
from dspark_deploy.capacity.work import Work
from dspark_deploy.profile import Profile

PoolVerdict = Literal["fits", "does not fit", "never"]


@dataclass(frozen=True, slots=True)
class Lane:
    """What a budget is made for."""

    profile: Profile
    step_tokens: int  # tokens that a step may schedule, its draft slots set aside
    pool: Pool | None
    largest_pool: int  # tokens of the largest pool that was ever published
    sweep: Sweep | None


@dataclass(frozen=True, slots=True)
class Measured:
    """Arithmetic on counted tokens and an announced (or predicted) pool. None: the pool is not known."""

    sessions: int
    prompt_tokens: int  # of the longest session
    output_tokens: int  # of the same
    live_tokens_total: int
    max_model_len: int
    fits_max_model_len: bool
    max_num_seqs: int
    sessions_waiting: int  # for one of max_num_seqs places
    kv_pool_tokens: int | None
    kv_pool_source: str
    kv_pool_used_pct: float | None
    kv_pool_verdict: PoolVerdict | None
    sessions_in_pool: float | None  # of this size; None for a mix
    sessions_that_fit: int | None  # the same as a whole number; of a mix, its own sessions, the smallest first
    batched_tokens_needed: int  # all prompts at once
    max_num_batched_tokens: int
    batch_exceeded: bool
    step_tokens: int
    prefill_steps: int  # at least


@dataclass(frozen=True, slots=True)
class Interpolated:
    """Figures between measured ones. None: the data gives no number."""

    source: str
    note: str
    sweep: str
    prompt_tokens: int
    concurrency: int
    ttft_s: float | None
    prefill_tps: float | None
    decode_tps: float | None
    aggregate_tps: float | None
    decode_aggregate_tps: float | None


@dataclass(frozen=True, slots=True)
class Derived:
    """What follows from the interpolated figures for answers of the length asked for."""

    output_tokens: int
    answer_s: float  # to the last token
    aggregate_tps: float  # of all sessions over that time


@dataclass(frozen=True, slots=True)
class Budget:
    """All that is known, and why the rest is not."""

    measured: Measured
    interpolated: Interpolated | None
    derived: Derived | None
    no_number: str | None  # why there are no interpolated figures
    verdict: tuple[str, ...]


def make_budget(work: Work, lane: Lane) -> Budget:
    """What is known of `work` on a lane."""
    measured = _measure(work, lane)
    found = _speed(work, lane)
    verdict = tuple(_verdict(measured, lane))
    if isinstance(found, NoNumber) or lane.sweep is None:
        return Budget(measured, None, None, found.why if isinstance(found, NoNumber) else None, verdict)
    interpolated = _interpolated(found, lane.sweep, measured, lane.profile)
    return Budget(measured, interpolated, _derive(found, work), None, verdict)


def prefill_steps(work: Work, step_tokens: int, longest_share: int) -> int:
    """Steps that reading all prompts takes at least. `longest_share` caps one prompt's part of a step; 0: no cap."""
    steps = math.ceil(work.prompt_tokens / step_tokens)
    if not longest_share:
        return steps
    longest = max(group.prompt_tokens for group in work.groups)
    return max(steps, math.ceil(longest / longest_share))


def sessions_that_fit(work: Work, pool_tokens: int) -> int:
    """How many sessions of this size fit a pool at once; of a mix, how many of its own, the smallest first."""
    if len(work.groups) == 1:
        return pool_tokens // work.groups[0].session_tokens
    fitting, left = 0, pool_tokens
    for group in sorted(work.groups, key=lambda each: each.session_tokens):
        some = min(group.sessions, left // group.session_tokens)
        fitting += some
        left -= some * group.session_tokens
    return fitting


def differences(conditions: Conditions, profile: Profile) -> tuple[str, ...]:
    """Where a profile is not what a sweep was measured with: `thinking low (here max)`."""
    measured = conditions.model_dump(exclude_none=True)
    here = {name: getattr(profile, name) or 0 for name in measured}
    return tuple(f"{name} {value} (here {here[name]})" for name, value in measured.items() if here[name] != value)


def _measure(work: Work, lane: Lane) -> Measured:
    profile, longest, pool = lane.profile, work.longest, lane.pool
    uniform = len(work.groups) == 1
    return Measured(
        sessions=work.sessions,
        prompt_tokens=longest.prompt_tokens,
        output_tokens=longest.output_tokens,
        live_tokens_total=work.live_tokens,
        max_model_len=profile.max_model_len,
        fits_max_model_len=longest.session_tokens <= profile.max_model_len,
        max_num_seqs=profile.max_num_seqs,
        sessions_waiting=max(work.sessions - profile.max_num_seqs, 0),
        kv_pool_tokens=pool.tokens if pool else None,
        kv_pool_source=f"{pool.kind}: {pool.source}" if pool else "not known",
        kv_pool_used_pct=100 * work.live_tokens / pool.tokens if pool else None,
        kv_pool_verdict=_pool_verdict(work, pool, lane.largest_pool),
        sessions_in_pool=pool.tokens / longest.session_tokens if pool and uniform else None,
        sessions_that_fit=sessions_that_fit(work, pool.tokens) if pool else None,
        batched_tokens_needed=work.prompt_tokens,
        max_num_batched_tokens=profile.max_num_batched_tokens,
        batch_exceeded=work.prompt_tokens > profile.max_num_batched_tokens,
        step_tokens=lane.step_tokens,
        prefill_steps=prefill_steps(work, lane.step_tokens, profile.long_prefill_token_threshold or 0),
    )


def _pool_verdict(work: Work, pool: Pool | None, largest: int) -> PoolVerdict | None:
    if pool is None:
        return None
    if work.live_tokens <= pool.tokens:
        return "fits"
    return "does not fit" if work.live_tokens <= max(largest, pool.tokens) else "never"


def _speed(work: Work, lane: Lane) -> Estimate | NoNumber:
    profile = lane.profile
    if lane.sweep is None:
        return NoNumber(f"no sweep was published for {profile.model} on {profile.family}")
    if work.longest.prompt_tokens > profile.max_model_len:
        return NoNumber(f"{work.longest.prompt_tokens} tokens are more than max_model_len {profile.max_model_len}")
    if len({group.prompt_tokens for group in work.groups}) > 1:
        return NoNumber("sweeps measure prompts of one length at a time, and this mix has several")
    return interpolate(lane.sweep, work.longest.prompt_tokens, min(work.sessions, profile.max_num_seqs))


def _interpolated(found: Estimate, sweep: Sweep, measured: Measured, profile: Profile) -> Interpolated:
    rows = " and ".join(f"{prompt} x {concurrency}" for prompt, concurrency in found.rows)
    return Interpolated(
        source=f"{sweep.name}, {'rows' if len(found.rows) > 1 else 'row'} {rows} ({sweep.source})",
        note="; ".join(_notes(found, sweep, measured, profile)),
        sweep=sweep.name,
        prompt_tokens=found.prompt,
        concurrency=found.concurrency,
        ttft_s=found.ttft_s,
        prefill_tps=found.prefill_tps,
        decode_tps=found.decode_tps,
        aggregate_tps=found.aggregate_tps,
        decode_aggregate_tps=found.decode_aggregate_tps,
    )


def _notes(found: Estimate, sweep: Sweep, measured: Measured, profile: Profile) -> Iterator[str]:
    yield found.rule
    if found.aggregate_tps is not None:
        yield f"the aggregate holds for answers of about {sweep.output_tokens} tokens"
    if measured.sessions > found.concurrency:
        yield f"for {found.concurrency} at a time, while {measured.sessions - found.concurrency} wait"
    if different := differences(sweep.conditions, profile):
        yield f"measured with {', '.join(different)}"


def _derive(found: Estimate, work: Work) -> Derived | None:
    output = work.longest.output_tokens
    seconds, aggregate = found.answer_s(output), found.aggregate_for(output)
    if not output or seconds is None or aggregate is None:
        return None
    return Derived(output, seconds, aggregate)


def _verdict(measured: Measured, lane: Lane) -> Iterator[str]:
    """One sentence a fact that a user has to know."""
    if not measured.fits_max_model_len:
        room = measured.max_model_len - measured.prompt_tokens
        over = measured.output_tokens - room
        hint = f"; answers of at most {room} tokens would fit" if room > 0 else ""
        yield f"too long by {over} tokens for max_model_len {measured.max_model_len}{hint}"
    yield from _pool_sentences(measured, lane)
    if measured.sessions_waiting:
        waiting = f"{measured.sessions_waiting} of {measured.sessions} sessions wait"
        yield f"{waiting}: max_num_seqs is {measured.max_num_seqs}"


def _pool_sentences(measured: Measured, lane: Lane) -> Iterator[str]:
    used = measured.kv_pool_used_pct
    if used is None or lane.pool is None:
        yield "the KV pool of this shape is not known: give it with --kv-pool, as the boot log announces it"
        return
    over = measured.live_tokens_total - lane.pool.tokens
    match measured.kv_pool_verdict:
        case "fits":
            yield f"fits the KV pool: {used:.2f} % of {lane.pool.tokens} tokens"
        case "never":
            yield f"never fits: {used:.2f} % of the KV pool, and more than any pool that was published"
        case _:
            yield (
                f"does not fit the KV pool: {used:.2f} %, {over} tokens too many; what is over waits, or is preempted "
                "and computed again"
            )
