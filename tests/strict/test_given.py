"""Text from flags and variables becomes the kind of value that its field holds."""

from __future__ import annotations

from typing import Any

import pytest

from dspark_deploy.errors import ConfigError
from dspark_deploy.profile import Profile
from dspark_deploy.strict import Given, data_of


def of(key: str, text: str) -> tuple[tuple[str | int, ...], Any]:
    return data_of(Profile, Given(key, text, "--set"))


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("max_num_seqs", "4", 4),
        ("max_num_seqs", "four", "four"),  # validation names it
        ("gpu_memory_utilization", "0.80", 0.8),
        ("gpu_memory_utilization", "0,80", "0,80"),
        ("thinking", "off", "off"),
        ("capture_size", "48", 48),
        ("capture_size", "none", "none"),
        ("served_model_name", "123", "123"),
        ("served_model_name", "null", None),
        ("generation_config", "null", None),
        ("async_scheduling", "no", False),
        ("async_scheduling", "1", True),
        ("async_scheduling", "False", False),
        ("async_scheduling", "perhaps", "perhaps"),
    ],
)
def test_text_becomes_what_the_field_holds(key: str, text: str, value: Any) -> None:
    assert of(key, text) == ((key,), value)
    assert type(of(key, text)[1]) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "path", "value"),
    [
        ("environment.NCCL_DEBUG", "INFO", ("environment", "NCCL_DEBUG"), "INFO"),
        ("environment.VLLM_USE_B12X_MOE", "1", ("environment", "VLLM_USE_B12X_MOE"), "1"),
        ("extra_flags.--stream-interval", "4", ("extra_flags", "--stream-interval"), 4),
        ("extra_flags.--enforce-eager", "true", ("extra_flags", "--enforce-eager"), True),
        ("extra_flags.--watermark", "0.1", ("extra_flags", "--watermark"), 0.1),
        ("extra_flags.--dtype", "auto", ("extra_flags", "--dtype"), "auto"),
        ("override_generation_config.top_k", "40", ("override_generation_config", "top_k"), 40),
    ],
)
def test_a_key_may_reach_into_a_mapping(key: str, text: str, path: tuple[str, ...], value: Any) -> None:
    assert of(key, text) == (path, value)


def test_a_whole_mapping_is_json() -> None:
    assert of("environment", '{"A": "1"}') == (("environment",), {"A": "1"})


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("environment", "A=1", "is not JSON"),
        ("max_num_seqs.x", "1", "reaches into max_num_seqs, which holds a whole number from 1 to 4096"),
        ("max_num_seqs", "", "is empty"),
    ],
)
def test_what_fits_no_field_is_refused_with_its_source(key: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        of(key, text)
    assert caught.value.message.startswith("--set: ")
