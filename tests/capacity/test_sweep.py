"""Interpolation in the published tables: the worked examples to their digits, the rules, and what physics says."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspark_deploy.capacity.measurements import Row, Sweep, load_measurements
from dspark_deploy.capacity.sweep import Estimate, NoNumber, choose_sweep, interpolate, longest_within, on_line

SWEEP, MATRIX = load_measurements().sweeps
NONE = "none"

# prompt, concurrency, TTFT, prefill, decode, aggregate: as published with the rules
EXAMPLES = [
    (100, 1, "0.63", "447", "75.4", "69.1"),
    (4096, 1, "1.9718", "2095.33", "71.3044", "52.0519"),
    (5000, 6, "12.3803", "410.43", "27.0730", "92.9950"),
    (16384, 1, "10.4980", "1564.02", "68.7721", "26.9336"),
    (20000, 4, "29.9993", "687.06", "22.8509", "38.0705"),
    (20000, 6, "39.6859", "513.68", "14.2669", "39.3173"),
    (65536, 1, "42.5218", "1541.95", "64.5972", "9.8965"),
    (65536, 2, "54.6038", "1296.47", "35.8099", "12.7937"),
    (125272, 1, "75.6441", "1656.67", "65.1605", "6.1027"),
    (2048, 6, "6.06", "342", "34.7", "143.7"),
    (200000, 1, "138.3711", "1445.81", NONE, NONE),
    (262144, 1, "198.5135", "1320.86", NONE, NONE),
    (500000, 1, "469.7336", "1064.59", NONE, NONE),
    (899994, 1, "1028.85", "874.8", NONE, NONE),
    (1000000, 1, "1184.1076", "844.54", NONE, NONE),
    (1048576, 1, "1261.4473", "831.27", NONE, NONE),
]


def estimate(prompt: int, concurrency: int, sweep: Sweep = SWEEP) -> Estimate:
    found = interpolate(sweep, prompt, concurrency)
    assert isinstance(found, Estimate)
    return found


def ttft(prompt: int, concurrency: int, sweep: Sweep = SWEEP) -> float:
    seconds = estimate(prompt, concurrency, sweep).ttft_s
    assert seconds is not None
    return seconds


def printed(value: float | None, like: str) -> str:
    """A figure with as many digits as the published one; that was rounded from one with four."""
    if value is None:
        return NONE
    digits = len(like.partition(".")[2])
    return str(Decimal(f"{value:.4f}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


@pytest.mark.parametrize(("prompt", "concurrency", "ttft_s", "prefill", "decode", "aggregate"), EXAMPLES)
def test_a_worked_example_comes_out_to_its_digits(
    prompt: int, concurrency: int, ttft_s: str, prefill: str, decode: str, aggregate: str
) -> None:
    found = estimate(prompt, concurrency)
    assert printed(found.ttft_s, ttft_s) == ttft_s
    assert printed(found.prefill_tps, prefill) == prefill
    assert printed(found.decode_tps, decode) == decode
    assert printed(found.aggregate_tps, aggregate) == aggregate


@pytest.mark.parametrize(("prompt", "concurrency"), [(131073, 2), (32769, 4), (32769, 6), (1000, 3), (1000, 5), (1, 7)])
def test_where_the_data_gives_no_number_there_is_none(prompt: int, concurrency: int) -> None:
    found = interpolate(SWEEP, prompt, concurrency)
    assert isinstance(found, NoNumber)
    assert SWEEP.name in found.why


def test_an_estimate_names_its_rows_and_rule() -> None:
    assert estimate(20000, 6).rows == ((8192, 6), (32768, 6))
    assert estimate(2048, 6).rows == ((2048, 6),)
    assert estimate(100, 1).rule == "shorter than the shortest row: that row as it is"
    assert estimate(1048576, 1).rule.endswith("the single measurement at 899994, and 16.5% beyond it")


def test_the_last_two_rows_alone_would_have_been_far_off() -> None:
    longer = on_line(899994, (32768, 22.96), (131072, 78.75))
    faster = on_line(899994, (32768, 1428), (131072, 1665))
    assert (f"{longer:.1f}", f"{faster:.0f}") == ("436.7", "2061")
    assert (f"{longer / 1028.85 - 1:.0%}", f"{faster / 874.8 - 1:.0%}") == ("-58%", "136%")


def test_a_straight_axis_would_have_ended_below_zero_and_logarithms_do_not() -> None:
    straight = 1665 + (874.8 - 1665) * (2_600_000 - 131072) / (899994 - 131072)
    assert straight < 0
    prefill = estimate(2_600_000, 1).prefill_tps
    assert prefill is not None
    assert prefill > 0


def test_an_independent_run_at_264k_took_a_little_less_than_the_line_says() -> None:
    assert int(ttft(264_000, 1) * 10) / 10 == 200.3  # printed cut, not rounded
    assert ttft(264_000, 1) > 177  # seconds, the longest of that report


def test_the_aggregate_follows_from_ttft_and_decoding_for_any_answer() -> None:
    longest = Estimate(131072, 1, 78.75, None, 65.18, None, None, (), "")
    assert f"{longest.aggregate_for(512):.2f}" == "5.91"
    assert longest.answer_s(0) == 78.75
    assert estimate(200000, 1).aggregate_for(512) is None


def test_the_aggregate_column_is_what_follows_for_the_sweeps_own_answers() -> None:
    for row in SWEEP.rows:
        derived = estimate(row.prompt, row.concurrency).aggregate_for(SWEEP.output_tokens)
        assert derived == pytest.approx(row.aggregate_tps, rel=0.35), row


def test_the_other_scheduler_speaks_only_where_its_patches_run() -> None:
    both = MATRIX.patches
    sweeps = (SWEEP, MATRIX)
    known = {"family": "anemll", "model": "deepseek-v4-flash-0731"}
    assert choose_sweep((), sweeps, **known) is SWEEP
    assert choose_sweep((), sweeps, **known, patches=both[:1]) is SWEEP
    assert choose_sweep((), sweeps, **known, patches=(*both, "another.py")) is MATRIX
    assert choose_sweep((), sweeps, family="stage-c", model="deepseek-v4-flash-dspark") is None
    assert choose_sweep((), sweeps, family="anemll", model="deepseek-v4-flash-dspark") is None


def test_the_pairs_own_sweep_goes_before_the_published_ones() -> None:
    own = SWEEP.model_copy(update={"name": "mine"})
    older = SWEEP.model_copy(update={"name": "older"})
    elsewhere = SWEEP.model_copy(update={"name": "elsewhere", "family": "stage-c"})
    known = {"family": "anemll", "model": "deepseek-v4-flash-0731"}
    assert choose_sweep((own, older), (SWEEP, MATRIX), **known, patches=MATRIX.patches) is own
    assert choose_sweep((elsewhere,), (SWEEP, MATRIX), **known) is SWEEP


def test_the_two_tables_are_never_mixed() -> None:
    assert estimate(4096, 1, MATRIX).ttft_s == pytest.approx(on_line(4096, (2048, 1.20), (8192, 4.62)))
    assert estimate(4096, 1, MATRIX).prefill_tps is None
    assert estimate(4096, 6, MATRIX).aggregate_tps is None
    assert estimate(8192, 6, MATRIX).decode_aggregate_tps == 29
    assert isinstance(interpolate(MATRIX, 131073, 1), NoNumber)


def test_a_figure_that_one_of_two_rows_lacks_is_no_number() -> None:
    rows = (Row(prompt=10, concurrency=1, ttft_s=1.0, decode_tps=9.0), Row(prompt=1000, concurrency=1, ttft_s=2.0))
    sweep = SWEEP.model_copy(update={"rows": rows, "points": ()})
    assert estimate(100, 1, sweep).ttft_s == pytest.approx(2**0.5)
    assert estimate(100, 1, sweep).decode_tps is None


def test_the_longest_prompt_within_a_time_is_read_in_it_and_one_token_more_is_not() -> None:
    length = longest_within(SWEEP, 6, 10.0, 1_048_576)
    assert ttft(length, 6) <= 10.0 < ttft(length + 1, 6)
    assert longest_within(SWEEP, 1, 0.1, 1_048_576) == 0
    assert longest_within(SWEEP, 1, 1e9, 5000) == 5000


COLUMNS = [(sweep, column) for sweep in (SWEEP, MATRIX) for column in (1, 2, 4, 6)]


@given(st.sampled_from(COLUMNS), st.integers(1, 1_200_000), st.integers(1, 1_200_000))
def test_a_longer_prompt_never_has_a_shorter_ttft(column: tuple[Sweep, int], one: int, other: int) -> None:
    sweep, concurrency = column
    short, long = (interpolate(sweep, prompt, concurrency) for prompt in sorted((one, other)))
    if isinstance(short, Estimate) and isinstance(long, Estimate):
        assert short.ttft_s is not None
        assert long.ttft_s is not None
        assert short.ttft_s <= long.ttft_s
    else:
        assert isinstance(long, NoNumber)  # past the end of the column, and never before it


@given(st.sampled_from((SWEEP, MATRIX)), st.integers(1, 32768))
def test_more_at_once_never_come_sooner_nor_decode_faster(sweep: Sweep, prompt: int) -> None:
    found = [estimate(prompt, column, sweep) for column in (1, 2, 4, 6)]
    seconds = [each.ttft_s or 0.0 for each in found]
    rates = [each.decode_tps or 0.0 for each in found]
    assert seconds == sorted(seconds)
    assert rates == sorted(rates, reverse=True)


@given(st.sampled_from(COLUMNS), st.integers(1, 131072))
def test_an_estimate_lies_between_its_rows(column: tuple[Sweep, int], prompt: int) -> None:
    sweep, concurrency = column
    found = interpolate(sweep, prompt, concurrency)
    if not isinstance(found, Estimate):
        return
    ends = [row.ttft_s for row in sweep.rows if (row.prompt, row.concurrency) in found.rows and row.ttft_s]
    assert found.ttft_s is not None
    assert min(ends) <= found.ttft_s * (1 + 1e-12)
    assert found.ttft_s <= max(ends) * (1 + 1e-12)
