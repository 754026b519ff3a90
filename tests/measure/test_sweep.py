"""A sweep's figures, its budget, and what its columns say."""

from __future__ import annotations

import asyncio

import pytest

from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.measure.bench_sweep import bench_sweep
from dspark_deploy.measure.outcome import Outcome, Request
from dspark_deploy.measure.side import Side
from dspark_deploy.measure.sweep import Cell, Plan, SweepTrial, budget_s, fitting, sweep_trial
from dspark_deploy.measure.trends import read_trends
from tests.measure.conftest import asked, silent
from tests.rehearsal.standin.loopback import Loopback

PUBLISHED = next(each for each in load_measurements().sweeps if each.name == "sweep-2026-08-01")


def cell(prompt: int, concurrency: int, ttft_s: float, decode_tps: float, aggregate_tps: float) -> Cell:
    """A cell of one trial with those figures."""
    trial = SweepTrial((ttft_s,), (prompt / ttft_s,), (decode_tps,), aggregate_tps, 1.0, (prompt,), 512)
    return Cell(prompt, concurrency, (trial,))


def published_cells(concurrency: int) -> list[Cell]:
    """The published column."""
    return [
        cell(row.prompt, row.concurrency, row.ttft_s or 0, row.decode_tps or 0, row.aggregate_tps or 0)
        for row in PUBLISHED.rows
        if row.concurrency == concurrency
    ]


def test_a_trial_counts_the_queue_in_ttft_and_the_prompt_in_the_aggregate() -> None:
    def outcome(first: float, last: float) -> Outcome:
        return Outcome(
            Request("x", {}),
            100.0,
            last,
            (first, last),
            finish_reason="length",
            prompt_tokens=1000,
            completion_tokens=101,
        )

    trial = sweep_trial([outcome(102.0, 104.0), outcome(104.0, 110.0)])
    assert trial.ttft_s == (2.0, 4.0)
    assert trial.prefill_tps == (500.0, 250.0)
    assert trial.decode_tps == pytest.approx((50.0, 100 / 6))
    assert trial.aggregate_tps == pytest.approx(202 / 10)


def test_p95_is_a_value_that_was_measured() -> None:
    trial = SweepTrial(tuple(float(each) for each in range(1, 101)), (), (), 1.0, 1.0, (), 1)
    assert Cell(256, 1, (trial,)).ttft_p95_s == 95.0
    assert Cell(256, 1, ()).ttft_p95_s is None


def test_what_does_not_fit_is_left_out_and_named() -> None:
    plan, left_out = fitting(Plan(), max_model_len=65536, most=4)
    assert plan.prompts == (256, 2048, 8192, 32768)
    assert plan.concurrency == (1, 2, 4)
    assert left_out == ("131072 tokens are more than max_model_len 65536", "6 at once are more than 4 sequences")


def test_the_budget_is_what_the_published_sweep_would_take() -> None:
    plan = Plan((256,), (1,), trials=1, cool_s=0.0)
    assert budget_s(plan, PUBLISHED, plan.cells) == pytest.approx(0.63 + 512 / 75.4)
    whole = Plan()
    assert 30 * 60 < budget_s(whole, PUBLISHED, whole.cells) < 120 * 60
    assert budget_s(whole, None, whole.cells) > 0


def test_the_published_columns_of_one_at_a_time_move_as_they_should() -> None:
    trends = {trend.column: trend for trend in read_trends(published_cells(1))}
    assert "125.0-fold" in trends["ttft"].message
    assert "decode keeps 86%" in trends["decode"].message
    assert "aggregate keeps 9%" in trends["aggregate"].message
    assert all(trend.as_expected for trend in trends.values())


def test_decode_that_falls_alone_is_no_good_sign() -> None:
    cells = [cell(256, 1, 0.6, 75.0, 69.0), cell(131072, 1, 80.0, 17.0, 5.0)]
    (decode,) = (trend for trend in read_trends(cells) if trend.column == "decode")
    assert not decode.as_expected
    assert "sparse path" in decode.message


def test_decode_that_falls_among_others_is_the_schedulers() -> None:
    (decode,) = (trend for trend in read_trends(published_cells(4)) if trend.column == "decode")
    assert decode.as_expected
    assert "prefill" in decode.message


def test_a_ttft_that_falls_is_told() -> None:
    cells = [cell(256, 1, 2.0, 75.0, 69.0), cell(8192, 1, 0.5, 75.0, 40.0)]
    (ttft,) = (trend for trend in read_trends(cells) if trend.column == "ttft")
    assert not ttft.as_expected


def test_one_length_has_no_trend() -> None:
    assert read_trends([cell(256, 1, 0.6, 75.0, 69.0)]) == ()


def test_cells_that_are_done_are_not_measured_again(serving: Loopback) -> None:
    kept: list[Cell] = []
    plan = Plan((64, 128), (1, 2), 2, 16, cool_s=0.0)

    async def work(side: Side) -> None:
        await bench_sweep(side, plan, {(64, 1), (64, 2)}, kept.append, silent)

    asked(serving.api_port, work)
    assert [(each.prompt, each.concurrency) for each in kept] == [(128, 1), (128, 2)]
    assert all(len(each.trials) == 2 and each.exact for each in kept)
    assert {tokens for each in kept for trial in each.trials for tokens in trial.prompt_tokens} == {128}


def test_a_trial_beyond_its_limit_is_kept_as_unfinished(serving: Loopback) -> None:
    serving.switches(0, decode_tps=100)
    kept: list[Cell] = []

    async def work(side: Side) -> None:
        serving.switches(0, decode_tps=20)
        await bench_sweep(side, Plan((64,), (2,), 3, 64, cool_s=0.0, cell_limit_s=0.2), (), kept.append, silent)

    async def quick(side: Side) -> None:
        await asyncio.wait_for(work(side), 20)

    asked(serving.api_port, quick)
    (only,) = kept
    assert "2 of 2 requests did not end within 0.2 s" in only.unfinished
    assert len(only.trials) == 1
