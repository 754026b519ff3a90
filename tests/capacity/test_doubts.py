"""What `plan` and `doctor` are told of a boot that has not happened: warnings, never a gate."""

from __future__ import annotations

from dataclasses import replace

from dspark_deploy.capacity.doubts import error_band, pool_doubts
from tests.capacity.lanes import DATA
from tests.capacity.test_pool import AGENT, recorded_boot


def test_a_shape_that_was_published_raises_no_doubt() -> None:
    assert pool_doubts(DATA, AGENT) == ()


def test_a_shape_on_record_raises_none_either() -> None:
    own = replace(AGENT, max_model_len=300_000)
    assert pool_doubts(DATA, own) != ()
    assert pool_doubts(DATA, own, recorded=(recorded_boot(max_model_len=300_000, concurrency=8.33),)) == ()


def test_another_shape_is_predicted_with_its_error() -> None:
    (doubt,) = pool_doubts(DATA, replace(AGENT, max_num_batched_tokens=16384))
    assert "no boot of this shape is on record" in doubt
    assert error_band(DATA) in doubt


def test_a_length_that_will_not_fit_once_is_named_with_the_line_that_would_end_the_boot() -> None:
    first, *_ = pool_doubts(DATA, replace(AGENT, gpu_memory_utilization=0.74))
    assert "To serve at least one request with the model's max seq len (1048576)" in first


def test_less_memory_in_a_node_counts() -> None:
    assert pool_doubts(DATA, AGENT, node_gib=105.0)[0].startswith("max_model_len 1048576 is predicted not to fit")


def test_no_room_for_a_cache_is_said() -> None:
    (doubt,) = pool_doubts(DATA, replace(AGENT, gpu_memory_utilization=0.6))
    assert "leave nothing for the KV cache" in doubt


def test_where_no_rule_is_known_nothing_is_said() -> None:
    assert pool_doubts(DATA, replace(AGENT, kv_cache_dtype="fp8")) == ()


def test_the_error_of_predictions_is_told_in_words() -> None:
    assert error_band(DATA) == "7 % in the middle, +0 % to +74 % at worst"
