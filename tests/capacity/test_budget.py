"""Does it fit: the published arithmetic to its digits, and the figures that go with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspark_deploy.capacity.budget import differences, make_budget, prefill_steps, sessions_that_fit
from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.capacity.work import Group, Work, parse_mix
from tests.capacity.lanes import LARGEST, MATRIX, POOL, SWEEP, lane, work

# sessions, prompt, output, live tokens, share, verdict: as published for a pool of 2493464
ARITHMETIC = [
    (6, 50_000, 0, 300_000, "12.03", "fits"),
    (6, 200_000, 0, 1_200_000, "48.13", "fits"),
    (6, 500_000, 0, 3_000_000, "120.31", "does not fit"),
    (3, 1_000_000, 0, 3_000_000, "120.31", "does not fit"),
    (2, 1_048_576, 0, 2_097_152, "84.11", "fits"),
    (6, 1_000_000, 0, 6_000_000, "240.63", "never"),
    (1, 125_272, 2_048, 127_320, "5.11", "fits"),
    (6, 2_048, 2_048, 24_576, "0.99", "fits"),
]


@pytest.mark.parametrize(("sessions", "prompt", "output", "live", "share", "verdict"), ARITHMETIC)
def test_the_published_arithmetic_comes_out(
    sessions: int, prompt: int, output: int, live: int, share: str, verdict: str
) -> None:
    measured = make_budget(work(sessions, prompt, output), lane()).measured
    assert measured.live_tokens_total == live
    assert f"{measured.kv_pool_used_pct:.2f}" == share
    assert measured.kv_pool_verdict == verdict


def test_six_times_500k_fit_the_largest_pool_that_was_published() -> None:
    measured = make_budget(work(6, 500_000), lane(pool=3_225_280)).measured
    assert (f"{measured.kv_pool_used_pct:.1f}", measured.kv_pool_verdict) == ("93.0", "fits")
    assert LARGEST == 3_225_280


def test_the_published_figures_for_125272_tokens_come_out() -> None:
    found = make_budget(work(1, 125_272, 2_048), lane())
    assert found.interpolated is not None
    speed, measured = found.interpolated, found.measured
    assert f"{speed.ttft_s:.0f}" == "76"  # printed as 1 min 16 s
    assert (f"{speed.prefill_tps:.0f}", f"{speed.decode_tps:.1f}", f"{speed.aggregate_tps:.1f}") == (
        "1657",
        "65.2",
        "6.1",
    )
    assert f"{measured.kv_pool_used_pct:.1f}" == "5.1"
    assert (measured.sessions_that_fit, f"{measured.sessions_in_pool:.2f}") == (19, "19.58")


def test_the_published_figures_for_2048_tokens_times_6_come_out() -> None:
    found = make_budget(work(6, 2_048, 2_048), lane())
    assert found.interpolated is not None
    speed = found.interpolated
    assert (speed.ttft_s, speed.prefill_tps, speed.decode_tps, speed.aggregate_tps) == (6.06, 342, 34.7, 143.7)
    assert (found.measured.batched_tokens_needed, found.measured.batch_exceeded) == (12_288, True)
    assert f"{found.measured.kv_pool_used_pct:.2f}" == "0.99"


@pytest.mark.parametrize(
    ("sessions", "prompt", "needed", "exceeded"),
    [(4, 2048, 8192, False), (6, 2048, 12288, True), (6, 256, 1536, False), (1, 125_272, 125_272, True)],
)
def test_the_batch_is_exceeded_where_all_prompts_are_more_than_a_step(
    sessions: int, prompt: int, needed: int, exceeded: bool
) -> None:
    measured = make_budget(work(sessions, prompt), lane()).measured
    assert (measured.batched_tokens_needed, measured.batch_exceeded) == (needed, exceeded)


def test_prompts_are_read_in_steps_and_one_prompt_gets_its_share_of_each() -> None:
    assert prefill_steps(work(4, 2048), 8168, 0) == 2  # 8192 tokens in steps of 8168
    assert prefill_steps(work(1, 8168), 8168, 0) == 1
    assert prefill_steps(work(1, 8168), 8168, 1024) == 8
    assert prefill_steps(work(6, 8192), 8168, 8192) == 7
    assert prefill_steps(parse_mix("1x10k,7x1k"), 8168, 1024) == 10


def test_what_is_more_than_a_step_is_never_said_to_make_the_ttft_jump() -> None:
    assert not any("TTFT" in sentence for sentence in make_budget(work(6, 2048, 2048), lane()).verdict)


def test_sources_stand_apart_for_what_is_measured_and_what_is_interpolated() -> None:
    found = make_budget(work(6, 20_000, 2_048), lane())
    assert found.interpolated is not None
    assert found.measured.kv_pool_source == "published: a boot"
    assert "rows 8192 x 6 and 32768 x 6" in found.interpolated.source
    assert SWEEP.source in found.interpolated.source
    assert "thinking low (here max)" in found.interpolated.note
    assert "514 tokens" in found.interpolated.note


def test_figures_for_an_answer_of_another_length_follow_from_the_others() -> None:
    found = make_budget(work(1, 131_072, 512), lane())
    assert found.derived is not None
    assert found.derived.answer_s == pytest.approx(78.75 + 512 / 65.2)
    assert f"{found.derived.aggregate_tps:.1f}" == "5.9"
    assert make_budget(work(1, 131_072), lane()).derived is None


@pytest.mark.parametrize(
    ("sessions", "prompt", "why"),
    [
        (2, 131_073, "up to 131072 tokens, not 131073"),
        (3, 1000, "no column for 3 at once"),
        (1, 1_048_577, "more than max_model_len 1048576"),
    ],
)
def test_no_number_says_why(sessions: int, prompt: int, why: str) -> None:
    found = make_budget(work(sessions, prompt), lane())
    assert (found.interpolated, found.derived) == (None, None)
    assert found.no_number is not None
    assert why in found.no_number


def test_a_mix_has_no_number_and_a_profile_without_sweep_neither() -> None:
    assert make_budget(parse_mix("6x50k,1x900k"), lane()).no_number is not None
    alone = make_budget(work(1, 1000), lane("concurrent-200k", sweep=None))
    assert alone.no_number == "no sweep was published for deepseek-v4-flash-dspark on stage-c"


def test_more_sessions_than_sequences_wait_and_the_figures_are_those_of_the_ones_that_run() -> None:
    found = make_budget(work(8, 2048, 2048), lane())
    assert found.measured.sessions_waiting == 2
    assert found.interpolated is not None
    assert (found.interpolated.concurrency, found.interpolated.ttft_s) == (6, 6.06)
    assert "for 6 at a time, while 2 wait" in found.interpolated.note
    assert "2 of 8 sessions wait: max_num_seqs is 6" in found.verdict


def test_a_session_that_is_too_long_says_how_long_its_answer_could_be() -> None:
    found = make_budget(work(1, 1_048_000, 2_048), lane())
    assert not found.measured.fits_max_model_len
    assert found.verdict[0] == (
        "too long by 1472 tokens for max_model_len 1048576; answers of at most 576 tokens would fit"
    )


def test_without_a_pool_nothing_is_said_to_fit() -> None:
    found = make_budget(work(1, 1000), lane(pool=None))
    assert (found.measured.kv_pool_tokens, found.measured.kv_pool_verdict, found.measured.sessions_that_fit) == (
        None,
        None,
        None,
    )
    assert "--kv-pool" in found.verdict[0]


def test_what_is_over_waits_or_is_preempted() -> None:
    (over,) = make_budget(work(6, 500_000), lane()).verdict
    assert over.startswith("does not fit the KV pool: 120.31 %, 506536 tokens too many; what is over waits")
    assert make_budget(work(6, 1_000_000), lane()).verdict[0].startswith("never fits: 240.63 %")


def test_of_a_mix_the_smallest_fit_first() -> None:
    assert sessions_that_fit(parse_mix("6x50k,1x900k"), POOL) == 7
    assert sessions_that_fit(parse_mix("4x100k,3x900k"), POOL) == 6
    assert sessions_that_fit(work(1, 127_320), POOL) == 19


def test_conditions_that_differ_are_named_and_equal_ones_are_not() -> None:
    profile = lane().profile
    assert differences(MATRIX.conditions, profile) == ("thinking off (here max)",)
    as_measured = lane(gpu_memory_utilization=0.80, long_prefill_token_threshold=0, thinking="low").profile
    assert differences(SWEEP.conditions, as_measured) == ()


SESSIONS = st.integers(1, 40)
TOKENS = st.integers(1, 1_200_000)


@given(SESSIONS, SESSIONS, TOKENS, TOKENS)
def test_more_sessions_never_use_less_pool(one: int, other: int, prompt: int, output: int) -> None:
    few, many = (make_budget(work(count, prompt, output), lane()).measured for count in sorted((one, other)))
    assert few.live_tokens_total <= many.live_tokens_total
    assert (few.kv_pool_used_pct or 0) <= (many.kv_pool_used_pct or 0)
    assert few.sessions_that_fit == many.sessions_that_fit
    assert few.prefill_steps <= many.prefill_steps
    assert few.sessions_waiting <= many.sessions_waiting


@given(SESSIONS, TOKENS, TOKENS)
def test_longer_sessions_never_use_less_pool_nor_do_more_of_them_fit(count: int, one: int, other: int) -> None:
    short, long = (make_budget(work(count, prompt), lane()).measured for prompt in sorted((one, other)))
    assert (short.kv_pool_used_pct or 0) <= (long.kv_pool_used_pct or 0)
    assert (short.sessions_that_fit or 0) >= (long.sessions_that_fit or 0)
    assert short.prefill_steps <= long.prefill_steps


@given(st.lists(st.tuples(SESSIONS, TOKENS), min_size=1, max_size=4), st.integers(0, 3_000_000))
def test_sessions_that_fit_really_fit_and_one_more_would_not(sizes: list[tuple[int, int]], pool: int) -> None:
    mix = Work(tuple(Group(sessions, size) for sessions, size in sizes))
    ordered = sorted(size for sessions, size in sizes for _ in range(sessions))
    fitting = sessions_that_fit(mix, pool)
    if len(sizes) == 1:
        assert fitting * sizes[0][1] <= pool < (fitting + 1) * sizes[0][1]
        return
    assert sum(ordered[:fitting]) <= pool
    assert fitting == len(ordered) or sum(ordered[: fitting + 1]) > pool


def test_every_published_sweep_has_conditions_that_a_profile_knows() -> None:
    for sweep in load_measurements().sweeps:
        assert all(hasattr(lane().profile, name) for name in sweep.conditions.model_dump())


def test_a_lane_may_have_another_pool() -> None:
    assert make_budget(work(1, 1000), replace(lane(), pool=None)).measured.kv_pool_source == "not known"
