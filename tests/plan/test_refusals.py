"""Combinations that can only fail: each is one error with its reason, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.errors import ConfigError, ExitCode
from dspark_deploy.plan.refusals import repository
from tests.plan.deployments import deploy, own_catalogue


def refused(profile: str, key: str, value: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        deploy(profile, {key: value})
    assert caught.value.code is ExitCode.USAGE
    assert caught.value.remedy
    return caught.value


def test_more_verify_rows_than_the_family_survives() -> None:
    error = refused("concurrent-200k", "family", "anemll")
    assert error.message.endswith("16 sequences x (5 draft tokens + 1) are 96 verify rows")
    assert "family anemll survives 64" in error.why
    assert "at most 10" in error.remedy


@pytest.mark.parametrize(("seqs", "drafts"), [("10", "5"), ("8", "7"), ("64", "0")])
def test_as_many_verify_rows_as_the_family_survives_are_fine(seqs: str, drafts: str) -> None:
    assert deploy(given={"max_num_seqs": seqs, "draft_tokens": drafts}).profile.verify_rows <= 64


def test_stage_c_has_no_such_limit() -> None:
    assert deploy("concurrent-200k").profile.verify_rows == 96


@pytest.mark.parametrize("drafts", ["1", "3", "4"])
def test_fewer_draft_tokens_than_the_model_drafts_at_once(drafts: str) -> None:
    error = refused("agent-1m", "draft_tokens", drafts)
    assert error.message == f"--set: `draft_tokens` is {drafts}, and deepseek-v4-flash-0731 drafts in blocks of 5"


def test_a_step_that_is_too_small_for_the_draft_slots() -> None:
    error = refused("agent-1m", "max_num_batched_tokens", "24")
    assert error.message == "--set: 24 batched tokens leave 0 to schedule, once 6 sequences have their draft slots"
    assert error.remedy == "set max_num_batched_tokens above 24"


@pytest.mark.parametrize(
    ("dtype", "remedy"), [("nvfp4_ds_ml", "did you mean `nvfp4_ds_mla`?"), ("zzz", "known: auto, bfloat16")]
)
def test_a_kind_of_kv_cache_that_no_vllm_knows(dtype: str, remedy: str) -> None:
    error = refused("agent-1m", "kv_cache_dtype", dtype)
    assert error.message == f"--set: `kv_cache_dtype` is {dtype}, which no vLLM knows"
    assert remedy in error.remedy


def test_an_image_of_one_s_own_may_know_more_kinds_of_kv_cache() -> None:
    assert deploy(given={"kv_cache_dtype": "mine", "image": "example.org/mine:1"}).profile.kv_cache_dtype == "mine"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_model_len", "99999999999"),
        ("max_num_seqs", "5000"),
        ("max_num_batched_tokens", "99999999999"),
        ("long_prefill_token_threshold", "99999999999"),
        ("block_size", "1000000"),
        ("draft_tokens", "65"),
        ("capture_size", "1000000"),
    ],
)
def test_a_number_beyond_all_measure(key: str, value: str) -> None:
    error = refused("agent-1m", key, value)
    assert error.message == f"--set: `{key}` is {value}"
    assert "a whole number from" in error.remedy


@pytest.mark.parametrize(
    ("profile", "flag", "value", "reason"),
    [
        ("agent-1m", "--max-num-partial-prefills", "2", "F13"),
        ("agent-1m", "--linear-backend", "flashinfer_b12x", "F14"),
        ("stage-c-c12", "--moe-backend", "flashinfer_b12x", "VLLM_USE_B12X_MOE"),
    ],
)
def test_a_flag_that_the_family_cannot_take(profile: str, flag: str, value: str, reason: str) -> None:
    error = refused(profile, f"extra_flags.{flag}", value)
    assert flag in error.message
    assert reason in error.why


@pytest.mark.parametrize(
    "flag", ["--max-model-len", "--node-rank", "--headless", "--moe-backend", "--speculative-config"]
)
def test_a_flag_that_is_there_already(flag: str) -> None:
    error = refused("agent-1m", f"extra_flags.{flag}", "1")
    assert error.message == f"--set: {flag} is made from a value of the profile or the inventory"


@pytest.mark.parametrize(
    "name",
    [
        "VLLM_HOST_IP",
        "GLOO_SOCKET_IFNAME",
        "NCCL_IB_HCA",
        "NCCL_IB_GID_INDEX",
        "HF_HOME",
        "HF_HUB_OFFLINE",
        "HF_HUB_CACHE",
    ],
)
def test_a_variable_that_is_derived(name: str) -> None:
    assert refused("agent-1m", f"environment.{name}", "x").message == f"--set: {name} is derived for each rank"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PATH", "PATH is one of the family's paths"),
        ("CUDA_HOME", "CUDA_HOME is one of the family's paths"),
        ("VLLM_API_KEY", "a secret never stands in a profile"),
        ("VLLM_PORT", "anemll can't run with VLLM_PORT=x"),
    ],
)
def test_a_variable_that_has_no_place_in_a_profile(name: str, message: str) -> None:
    assert message in refused("agent-1m", f"environment.{name}", "x").message


@pytest.mark.parametrize(
    ("profile", "name", "value", "reason"),
    [
        ("stage-c-c12", "VLLM_USE_B12X_FP8_GEMM", "1", "F06"),
        ("stage-c-c12", "VLLM_DSPARK_GPU_REJECTED_CONTEXT_MASK", "0", "F103"),
        ("stage-c-c12", "VLLM_PORT", "8888", "F76"),
        ("agent-1m", "VLLM_PORT", "8888", "F76"),
        ("agent-1m", "VLLM_USE_V2_MODEL_RUNNER", "0", "V2 runner"),
        ("agent-1m", "NCCL_IB_DISABLE", "1", "NCCL_NET=IB"),
    ],
)
def test_a_value_that_the_family_cannot_run_with(profile: str, name: str, value: str, reason: str) -> None:
    error = refused(profile, f"environment.{name}", value)
    assert f"{name}={value}" in error.message
    assert reason in error.why


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("VLLM_PLUGINS", "F78"),
        ("VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "F77"),
        ("NCCL_IB_MERGE_NICS", "defined and empty"),
    ],
)
def test_an_empty_variable(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "mine.yaml").write_text(f"name: mine\nextends: agent-1m\ntitle: Mine\nenvironment:\n  {name}: ''\n")
    with pytest.raises(ConfigError) as caught:
        deploy("mine", catalogue=own_catalogue(tmp_path))
    assert caught.value.message == f"{tmp_path}/mine.yaml line 5: {name} is empty"
    assert reason in caught.value.why


@pytest.mark.parametrize("value", ["1000", "many", "0", "-256"])
def test_a_retention_interval_that_is_no_multiple_of_the_block(value: str) -> None:
    error = refused("agent-1m", "environment.VLLM_PREFIX_CACHE_RETENTION_INTERVAL", value)
    assert f"VLLM_PREFIX_CACHE_RETENTION_INTERVAL is {value}, with a block size of 256" in error.message


def test_a_block_size_that_the_retention_interval_is_no_multiple_of() -> None:
    error = refused("agent-1m", "block_size", "96")
    assert error.message.startswith("--set: VLLM_PREFIX_CACHE_RETENTION_INTERVAL is 4096")


@pytest.mark.parametrize(
    ("profile", "name", "other"),
    [
        ("agent-1m", "VLLM_USE_B12X_WO_PROJECTION", "stage-c"),
        ("agent-1m", "VLLM_DSPARK_LOCAL_ARGMAX", "stage-c"),
        ("agent-1m", "DSPARK_SLOT_CLAMP", "stage-c"),
        ("stage-c-c12", "VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "anemll"),
    ],
)
def test_a_switch_of_the_other_family(profile: str, name: str, other: str) -> None:
    error = refused(profile, f"environment.{name}", "4096")
    assert error.message == f"--set: {name} is a switch of family {other}"
    assert f"--family {other}" in error.remedy


@pytest.mark.parametrize(
    ("profile", "image", "other"),
    [
        ("agent-1m", "vllm-dspark-runtime:dspark-nvfp4-stage-c", "stage-c"),
        ("stage-c-c12", "ghcr.io/anemll/dspark-vllm-gx10:0.1.1", "anemll"),
    ],
)
def test_an_image_of_the_other_family(profile: str, image: str, other: str) -> None:
    error = refused(profile, "image", image)
    assert error.message.startswith(f"--set: `image` {image} is of family {other}")
    assert error.remedy == f"say --family {other}, or leave the image out"


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("ghcr.io/a/b:1@sha256:00", "ghcr.io/a/b"),
        ("localhost:5000/a", "localhost:5000/a"),
        ("a:1", "a"),
    ],
)
def test_an_images_repository_is_its_name_alone(image: str, name: str) -> None:
    assert repository(image) == name


@pytest.mark.parametrize("name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "VLLM_API_KEY"])
def test_a_secret_in_the_environment(name: str) -> None:
    assert "is a secret" in refused("agent-1m", f"environment.{name}", "hush").message


@pytest.mark.parametrize("flag", ["--api-key", "--hf-token"])
def test_a_secret_on_the_command_line(flag: str) -> None:
    assert "carries a secret" in refused("agent-1m", f"extra_flags.{flag}", "hush").message
