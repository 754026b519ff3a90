"""Acceptance from the server's own counters."""

from __future__ import annotations

import pytest

from dspark_deploy.facts.metrics import between, parse_counters, since_start

BEFORE = """\
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 100.0
vllm:num_preemptions_total{engine="0",model_name="m"} 1.0
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 10.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 50.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 30.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 9.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 7.0
"""
AFTER = (
    BEFORE.replace(" 100.0", " 612.0")
    .replace(" 1.0", " 3.0")
    .replace(" 10.0", " 110.0")
    .replace(" 50.0", " 550.0")
    .replace(" 30.0", " 380.0")
    .replace(" 9.0", " 102.0")
    .replace(" 7.0", " 40.0")
)


def test_acceptance_is_of_what_was_drafted_in_between() -> None:
    found = between(parse_counters(BEFORE), parse_counters(AFTER))
    assert found is not None
    assert (found.generated_tokens, found.preemptions) == (512, 2)
    acceptance = found.acceptance
    assert acceptance is not None
    assert acceptance.drafts == 100
    assert acceptance.rate == pytest.approx(0.7)
    assert acceptance.per_draft == pytest.approx(3.5)
    assert acceptance.positions == pytest.approx((0.93, 0.33))


def test_without_drafts_there_is_no_acceptance() -> None:
    found = between(parse_counters(BEFORE), parse_counters(BEFORE))
    assert found is not None
    assert found.acceptance is None


def test_two_engines_are_added_up() -> None:
    text = 'vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_running{engine="1"} 3.0\n'
    counters = parse_counters(text)
    assert counters is not None
    assert counters.get("num_requests_running") == 5.0
    assert counters.get("absent") == 0.0


def test_a_page_without_vllm_s_counters_is_none() -> None:
    assert parse_counters("<html>") is None
    assert between(None, parse_counters(BEFORE)) is None


def test_a_server_that_was_started_anew_in_between_tells_nothing_of_the_time_between() -> None:
    assert between(parse_counters(AFTER), parse_counters(BEFORE)) is None


def test_of_the_whole_life_everything_counts() -> None:
    counters = parse_counters(AFTER)
    assert counters is not None
    whole = since_start(counters)
    assert whole is not None
    assert (whole.generated_tokens, whole.preemptions) == (612, 3)


def test_labels_may_hold_what_the_format_escapes() -> None:
    counters = parse_counters('vllm:num_requests_running{model_name="a\\"}b"} 2.0\nprocess_start_time_seconds 5.5\n')
    assert counters is not None
    assert (counters.running, counters.started_s) == (2, 5.5)


def test_the_share_of_the_pool_has_two_names() -> None:
    for name in ("kv_cache_usage_perc", "gpu_cache_usage_perc"):
        counters = parse_counters(f"vllm:{name} 0.25\n")
        assert counters is not None
        assert counters.kv_usage == 0.25
