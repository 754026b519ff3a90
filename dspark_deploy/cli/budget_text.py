"""A budget as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dspark_deploy.capacity.budget import Interpolated, Measured
    from dspark_deploy.flow.budget import BudgetReport, TextReport

MINUTE, HOUR = 60, 3600


def budget_text(report: BudgetReport) -> str:
    """Measured first, then what is interpolated, then what it means."""
    return "\n".join(
        (
            f"{report.profile} (family {report.family}, model {report.model})",
            *_text(report.text),
            *_pool(report),
            *_measured(report.measured),
            *_speed(report),
            *(f"  -> {sentence}" for sentence in report.verdict),
        )
    )


def spell_seconds(seconds: float) -> str:
    """`0.63 s`, `1 min 16 s`, `1 h 02 min`."""
    if seconds < MINUTE:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), MINUTE)
    if seconds < HOUR:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // MINUTE} h {minutes % MINUTE:02} min"


def _text(text: TextReport | None) -> Iterator[str]:
    if text is None:
        return
    yield f"  text       {text.tokens} tokens"
    yield f"  counted by {text.counted_by}"
    if text.scan is None:
        return
    yield f"  read       {text.scan.files} files, {text.scan.bytes / 1e6:.1f} MB"
    if text.scan.skipped:
        yield f"  skipped    {', '.join(f'{reason} ({number})' for reason, number in text.scan.skipped.items())}"
    for file in text.scan.largest[:5]:
        yield f"  largest    {file.tokens:>9}  {file.name}"


def _pool(report: BudgetReport) -> Iterator[str]:
    measured = report.measured
    yield f"  work       {_work(measured)}: {measured.live_tokens_total} live tokens"
    if measured.kv_pool_used_pct is not None:
        yield f"  KV pool    {measured.kv_pool_used_pct:.2f} % of {measured.kv_pool_tokens} tokens"
        if measured.sessions_in_pool is None:
            yield f"             {measured.sessions_that_fit} of these {measured.sessions} sessions fit it at once"
        else:
            fitting = f"{measured.sessions_that_fit} such sessions fit it at once"
            yield f"             {fitting} ({measured.sessions_in_pool:.2f})"
    yield f"             {measured.kv_pool_source}"
    if report.prediction_error is not None:
        yield f"             such predictions were off by {report.prediction_error}"


def _measured(measured: Measured) -> Iterator[str]:
    length = measured.prompt_tokens + measured.output_tokens
    yield f"  length     {length} of {measured.max_model_len} tokens"
    running = min(measured.sessions, measured.max_num_seqs)
    yield f"  sequences  {running} of {measured.max_num_seqs}"
    over = "more than" if measured.batch_exceeded else "within"
    steps = f"{measured.prefill_steps} step{'s' if measured.prefill_steps > 1 else ''}"
    batch = f"{measured.batched_tokens_needed} prompt tokens"
    yield f"  batch      {batch}, {over} the {measured.max_num_batched_tokens} of a step"
    yield f"             read in at least {steps} of at most {measured.step_tokens} tokens"


def _work(measured: Measured) -> str:
    size = f"{measured.prompt_tokens} + {measured.output_tokens}" if measured.output_tokens else measured.prompt_tokens
    if measured.sessions == 1:
        return f"1 session of {size} tokens"
    if measured.sessions_in_pool is None and measured.kv_pool_tokens is not None:
        return f"{measured.sessions} sessions, the longest of {size} tokens"
    return f"{measured.sessions} sessions of {size} tokens"


def _speed(report: BudgetReport) -> Iterator[str]:
    figures = report.interpolated
    if figures is None:
        yield f"  speed      no number: {report.no_number}"
        return
    yield from _figures(figures)
    if report.derived is not None:
        whole = f"{spell_seconds(report.derived.answer_s)} for {report.derived.output_tokens} tokens"
        yield f"  answer     {whole}, {report.derived.aggregate_tps:.1f} tok/s over all of it"
    yield f"  source     {figures.source}"
    yield f"             {figures.note}"


def _figures(figures: Interpolated) -> Iterator[str]:
    ttft = "no number" if figures.ttft_s is None else spell_seconds(figures.ttft_s)
    yield f"  TTFT       {ttft}"
    yield f"  prefill    {_rate(figures.prefill_tps, 0)}"
    yield f"  decode     {_rate(figures.decode_tps, 1)} a stream" if figures.decode_tps else "  decode     no number"
    yield f"  aggregate  {_rate(figures.aggregate_tps, 1)}"
    if figures.decode_aggregate_tps is not None:
        yield f"             {_rate(figures.decode_aggregate_tps, 1)} of decoding alone"


def _rate(value: float | None, digits: int) -> str:
    return "no number" if value is None else f"{value:.{digits}f} tok/s"
