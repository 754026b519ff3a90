"""The KV pool: the published predictions to their digits, where a pool comes from, what a pair's own boots change."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspark_deploy.capacity.measurements import Boot, load_measurements
from dspark_deploy.capacity.pool import (
    GIB,
    Shape,
    boot_error,
    boot_errors,
    choose_pool,
    find_boot,
    kv_memory,
    predict,
    predict_boot,
    refine,
    request_bytes,
    rule_for,
)

DATA = load_measurements()
DRAFTING, UNDRAFTED, STAGE_C = DATA.pool_rules
AGENT = Shape("anemll", "deepseek-v4-flash-0731", 1_048_576, 8192, 5, 0.85, max_num_seqs=6)
FITTED = [each for each in boot_errors(DATA) if each.boot.fit]

# length, drafting, smaller rank's GiB, ratio, bytes of a full request: the table that the rule was fitted to
FIT = [
    (350_000, True, 10.61, "2.43864", "4.672e9"),
    (350_000, True, 10.64, "2.44434", "4.674e9"),
    (350_000, True, 5.63, "1.29402", "4.672e9"),
    (350_000, False, 10.19, "2.43511", "4.493e9"),
    (65_536, False, 10.21, "3.27263", "3.350e9"),
    (1_048_576, True, 19.03, "2.69544", "7.581e9"),
]
# batched tokens, bytes and GiB of a full request of 1048576 tokens, ratio at 18.08 and at 17.6 GiB
STEPS = [
    (1024, "4.81e9", "4.48", "4.03", "3.93"),
    (4096, "6.00e9", "5.59", "3.24", "3.15"),
    (8192, "7.58e9", "7.06", "2.56", "2.49"),
    (16384, "10.75e9", "10.01", "1.81", "1.76"),
]


def scientific(value: float, digits: int) -> str:
    return f"{value / 1e9:.{digits}f}e9"


@pytest.mark.parametrize(("length", "drafting", "gib", "ratio", "size"), FIT)
def test_the_fit_table_is_that_of_the_published_boots(
    length: int, drafting: bool, gib: float, ratio: str, size: str
) -> None:
    boot = next(
        each
        for each in DATA.boots
        if each.fit and (each.max_model_len, bool(each.draft_tokens), each.smaller_gib) == (length, drafting, gib)
    )
    assert f"{boot.ratio:.5f}" == ratio
    assert scientific(gib * GIB / boot.ratio, 3) == size


@pytest.mark.parametrize("error", FITTED, ids=lambda error: error.boot.name)
def test_a_boot_of_the_fit_table_is_predicted_within_5_percent(error: object) -> None:
    assert isinstance(share := getattr(error, "from_kv_memory", None), float)
    assert abs(share) < 0.05


def test_six_boots_are_in_the_fit_table() -> None:
    assert len(FITTED) == 6


@pytest.mark.parametrize(("batched", "size", "gib", "at_18", "at_17"), STEPS)
def test_the_step_decides_what_a_request_may_hold(batched: int, size: str, gib: str, at_18: str, at_17: str) -> None:
    held = request_bytes(DRAFTING, 1_048_576, batched)
    assert scientific(held, 2) == size
    assert f"{held / GIB:.2f}" == gib
    assert f"{predict(DRAFTING, 18.08, 1_048_576, batched).concurrency:.2f}" == at_18
    assert f"{predict(DRAFTING, 17.6, 1_048_576, batched).concurrency:.2f}" == at_17


def test_the_worked_example_comes_out_to_its_digits() -> None:
    short = predict(DRAFTING, 10.61, 350_000, 8192)
    assert (scientific(short.request_bytes, 3), f"{short.concurrency:.3f}") == ("4.671e9", "2.439")
    assert round(short.pool_tokens, -2) == 853_600
    long = predict(DRAFTING, 10.61, 1_048_576, 8192)
    assert (scientific(long.request_bytes, 3), f"{long.concurrency:.3f}") == ("7.580e9", "1.503")
    assert round(long.pool_tokens, -2) == 1_575_900


def test_the_rules_are_the_published_ones() -> None:
    assert f"{DRAFTING.bytes_per_token:.0f}" == "4164"
    assert scientific(request_bytes(DRAFTING, 0, 8192), 2) == "3.21e9"
    assert f"{DRAFTING.bytes_per_step_token / 1000:.0f}" == "386"
    assert f"{UNDRAFTED.bytes_per_token:.0f}" == "4018"
    assert scientific(request_bytes(UNDRAFTED, 0, 8192), 2) == "3.09e9"
    assert STAGE_C.bytes_per_token == 3300
    assert scientific(request_bytes(STAGE_C, 0, 8192), 1) == "3.2e9"


def test_the_reserve_is_the_median_of_boots_with_drafting_and_usual_weights() -> None:
    bare = DATA.memory.model_copy(update={"reserve_gib": 0.0})
    left = [
        kv_memory(bare, boot.gpu_memory_utilization, drafting=True) - boot.smaller_gib
        for boot in DATA.boots
        if boot.draft_tokens
        and boot.gpu_memory_utilization
        and boot.smaller_gib
        and boot.max_num_batched_tokens
        and not boot.weights_gib
    ]
    assert f"{median(left):.2f}" == f"{DATA.memory.reserve_gib:.2f}"


def test_a_utilization_of_087_asks_for_the_memory_that_a_report_says_it_does() -> None:
    assert f"{0.87 * DATA.memory.node_gib:.2f}" == "105.87"


def test_what_a_boot_did_not_publish_has_no_error_until_it_is_assumed() -> None:
    boots = {boot.name: boot for boot in DATA.boots}
    assert boot_error(DATA, boots["anemll-vision-080"]).from_kv_memory is None
    assumed = boot_error(DATA, boots["anemll-vision-080"], 16384).from_kv_memory
    assert assumed is not None
    assert abs(assumed) < 0.03  # why 16384 is taken for the step of those boots
    assert boot_error(DATA, boots["stage-c-single"]).from_node_memory is None


def test_the_default_profile_has_its_published_pool() -> None:
    pool = choose_pool(DATA, AGENT)
    assert pool is not None
    assert (pool.tokens, pool.kind) == (2_493_464, "published")
    assert "anemll-0731" in pool.source


@pytest.mark.parametrize(
    "change",
    [
        {"max_model_len": 500_000},
        {"max_num_batched_tokens": 16384},
        {"draft_tokens": 0},
        {"gpu_memory_utilization": 0.84},
    ],
)
def test_a_pool_holds_for_its_shape_alone(change: dict[str, float]) -> None:
    pool = choose_pool(DATA, replace(AGENT, **change))  # type: ignore[arg-type]  # each value has its field's type
    assert pool is not None
    assert pool.kind == "predicted"


def test_another_model_or_kv_format_has_another_pool() -> None:
    preview = choose_pool(DATA, replace(AGENT, model="deepseek-v4-flash-dspark"))
    assert preview is not None
    assert preview.tokens == 2_826_378
    assert choose_pool(DATA, replace(AGENT, kv_cache_dtype="fp8")) is None


def test_sequences_decide_nothing_about_the_pool() -> None:
    assert choose_pool(DATA, replace(AGENT, max_num_seqs=2)) == choose_pool(DATA, AGENT)


def test_a_given_pool_beats_the_recorded_one_and_that_the_published_one() -> None:
    own = recorded_boot(pool_tokens=2_500_000)
    given_pool = choose_pool(DATA, AGENT, given=3, recorded=(own,))
    recorded_pool = choose_pool(DATA, AGENT, recorded=(own, recorded_boot(pool_tokens=1)))
    assert given_pool is not None
    assert recorded_pool is not None
    assert (given_pool.tokens, given_pool.kind) == (3, "given")
    assert (recorded_pool.tokens, recorded_pool.kind) == (2_500_000, "recorded")


def test_of_two_boots_the_one_with_the_same_drafts_and_sequences_is_nearer() -> None:
    other = recorded_boot(draft_tokens=6, max_num_seqs=6)
    same = recorded_boot(draft_tokens=5, max_num_seqs=6)
    assert find_boot((other, same), AGENT) is same


def test_every_boot_on_record_refines_the_rules() -> None:
    own = recorded_boot(head_gib=20.0, worker_gib=19.0, pool_tokens=2_400_000)
    refined = refine(DATA, (own,))
    shape = replace(AGENT, max_model_len=500_000)
    before, after = predict_boot(DATA, shape), predict_boot(refined, shape)
    assert before is not None
    assert after is not None
    assert predict_boot(refined, AGENT) is not None
    again = predict_boot(refined, AGENT)
    assert again is not None
    assert again.pool_tokens == pytest.approx(own.pool_tokens, rel=1e-6)  # it now predicts its own boot
    assert after.kv_gib == pytest.approx(19.0)
    assert before.kv_gib != after.kv_gib
    assert refine(DATA, ()) == DATA


def test_a_boot_of_another_family_or_without_figures_refines_nothing() -> None:
    assert refine(DATA, (recorded_boot(family="stage-c", draft_tokens=0),)).pool_rules == DATA.pool_rules
    assert refine(DATA, (recorded_boot(head_gib=None, worker_gib=None),)) == DATA


def test_nothing_is_left_where_even_the_weights_do_not_fit() -> None:
    predicted = predict_boot(DATA, replace(AGENT, gpu_memory_utilization=0.5))
    assert predicted is not None
    assert predicted.pool_tokens == 0
    assert choose_pool(DATA, replace(AGENT, gpu_memory_utilization=0.5)) is None


def test_a_rule_is_found_by_family_format_and_drafting() -> None:
    assert rule_for(DATA.pool_rules, "anemll", "nvfp4_ds_mla", drafting=False) is UNDRAFTED
    assert rule_for(DATA.pool_rules, "stage-c", "nvfp4_ds_mla", drafting=False) is None


LENGTHS = st.integers(1024, 1_048_576)
BATCHES = st.integers(512, 32768)


@given(st.floats(1, 60), st.floats(1, 60), LENGTHS, BATCHES)
def test_more_memory_never_makes_a_smaller_pool(one: float, other: float, length: int, batched: int) -> None:
    less, more = sorted((one, other))
    assert predict(DRAFTING, less, length, batched).pool_tokens <= predict(DRAFTING, more, length, batched).pool_tokens


@given(st.floats(1, 60), LENGTHS, BATCHES, BATCHES)
def test_larger_steps_never_make_a_larger_pool(gib: float, length: int, one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert predict(DRAFTING, gib, length, large).pool_tokens <= predict(DRAFTING, gib, length, small).pool_tokens


@given(st.floats(1, 60), LENGTHS, LENGTHS, BATCHES)
def test_a_longer_length_has_a_lower_concurrency_and_a_larger_figure(
    gib: float, one: int, other: int, batched: int
) -> None:
    short, long = (predict(DRAFTING, gib, length, batched) for length in sorted((one, other)))
    assert long.concurrency <= short.concurrency
    assert long.pool_tokens >= short.pool_tokens


def recorded_boot(**changes: object) -> Boot:
    """A boot of the default profile on this pair."""
    known = {
        "name": "20260901",
        "source": "this pair",
        "family": "anemll",
        "model": "deepseek-v4-flash-0731",
        "max_model_len": 1_048_576,
        "max_num_seqs": 6,
        "max_num_batched_tokens": 8192,
        "draft_tokens": 5,
        "gpu_memory_utilization": 0.85,
        "head_gib": 19.5,
        "worker_gib": 18.5,
        "pool_tokens": 2_500_000,
        "concurrency": 2.38,
    }
    return Boot.model_validate({**known, **changes})
