"""What a server does, by its own counters."""

from __future__ import annotations

import pytest

from dspark_deploy.facts.metrics import Counters
from dspark_deploy.watch.metrics import Reading, load_of

BEFORE = {
    "num_requests_running": 1.0,
    "num_requests_waiting": 0.0,
    "prompt_tokens": 1000.0,
    "generation_tokens": 200.0,
    "spec_decode_num_drafts": 50.0,
    "spec_decode_num_draft_tokens": 250.0,
    "spec_decode_num_accepted_tokens": 100.0,
}
AFTER = {
    **BEFORE,
    "num_requests_running": 3.0,
    "num_requests_waiting": 2.0,
    "kv_cache_usage_perc": 0.5,
    "num_preemptions": 4.0,
    "prompt_tokens": 3000.0,
    "generation_tokens": 320.0,
}


def reading(at_s: float, values: dict[str, float]) -> Reading:
    return Reading(at_s, Counters(values, {}))


def test_rates_are_of_the_time_between_two_readings() -> None:
    load = load_of(reading(10, BEFORE), reading(12, AFTER))
    assert (load.running, load.waiting, load.kv_usage, load.preemptions) == (3, 2, 0.5, 4)
    assert (load.prompt_tps, load.generation_tps, load.over_s) == (1000.0, 60.0, 2.0)


def test_acceptance_is_of_what_was_drafted_in_between_where_anything_was() -> None:
    drafted = {
        **AFTER,
        "spec_decode_num_drafts": 60.0,
        "spec_decode_num_draft_tokens": 300.0,
        "spec_decode_num_accepted_tokens": 140.0,
    }
    load = load_of(reading(10, BEFORE), reading(12, drafted))
    assert load.acceptance == pytest.approx(0.8)
    assert load.accepted_per_draft == pytest.approx(4.0)
    assert not load.acceptance_since_start


def test_else_it_is_of_the_server_s_whole_life() -> None:
    load = load_of(reading(10, BEFORE), reading(12, AFTER))
    assert load.acceptance == pytest.approx(0.4)
    assert load.acceptance_since_start


def test_one_reading_or_a_restarted_server_gives_no_rates() -> None:
    assert load_of(None, reading(1, AFTER)).generation_tps is None
    restarted = load_of(reading(1, AFTER), reading(2, BEFORE))
    assert (restarted.prompt_tps, restarted.over_s) == (None, None)
