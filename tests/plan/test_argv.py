"""The command line of every profile and rank: the published one, and one that vLLM's own parser takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspark_deploy.plan.argv import model_path, own_flags, serve_argv
from tests.plan.deployments import PROFILES, deploy, own_catalogue
from tests.vllm_parser import FAMILY_LACKS, check, parse

AGENT = (
    "serve deepseek-ai/DeepSeek-V4-Flash-0731 --revision 9e165c30e2704aec5d9d593cce3eebd58bbef1cb "
    "--served-model-name deepseek-v4-flash-0731 --host 0.0.0.0 --port 8888 --trust-remote-code "
    "--tensor-parallel-size 2 --pipeline-parallel-size 1 --kv-cache-dtype nvfp4_ds_mla --block-size 256 "
    "--max-model-len 1048576 --max-num-seqs 6 --max-num-batched-tokens 8192 --long-prefill-token-threshold 1024 "
    "--max-cudagraph-capture-size 40 --gpu-memory-utilization 0.85 --enable-prefix-caching "
    "--enable-prompt-tokens-details --async-scheduling --enable-chunked-prefill --speculative-config "
    '{"method":"dspark","num_speculative_tokens":5,"draft_sample_method":"probabilistic"} '
    "--tokenizer-mode deepseek_v4 --distributed-executor-backend mp --moe-backend flashinfer_b12x "
    "--tool-call-parser deepseek_v4 --enable-auto-tool-choice --reasoning-parser deepseek_v4 --reasoning-config "
    '{"reasoning_parser":"deepseek_v4","reasoning_start_str":"<think>","reasoning_end_str":"</think>"} '
    '--default-chat-template-kwargs {"thinking":true,"reasoning_effort":"max"} --generation-config vllm '
    "--enable-flashinfer-autotune --nnodes 2 --node-rank 0 --master-addr 192.168.177.11 --master-port 25000"
)
CONSERVATIVE = (
    "serve /cache/huggingface/fraserprice/DeepSeek-V4-Flash-DSpark --served-model-name deepseek-v4-flash-dspark "
    "--host 0.0.0.0 --port 8888 --trust-remote-code --tensor-parallel-size 2 --pipeline-parallel-size 1 "
    "--kv-cache-dtype nvfp4_ds_mla --block-size 256 --max-model-len 1048576 --max-num-seqs 6 "
    "--max-num-batched-tokens 8192 --gpu-memory-utilization 0.8 --enable-prefix-caching --speculative-config "
    '{"method":"dspark","num_speculative_tokens":5} '
    "--tokenizer-mode deepseek_v4 --distributed-executor-backend mp "
    "--tool-call-parser deepseek_v4 --enable-auto-tool-choice --reasoning-parser deepseek_v4 --reasoning-config "
    '{"reasoning_parser":"deepseek_v4","reasoning_start_str":"<think>","reasoning_end_str":"</think>"} '
    '--default-chat-template-kwargs {"thinking":false} --generation-config vllm '
    '--override-generation-config {"temperature":0.0,"top_p":1.0} '
    "--enable-flashinfer-autotune --nnodes 2 --node-rank 0 --master-addr 192.168.177.11 --master-port 25000"
)


def value_of(flag: str, argv: tuple[str, ...]) -> str | None:
    return argv[argv.index(flag) + 1] if flag in argv else None


@pytest.mark.parametrize(("profile", "line"), [("agent-1m", AGENT), ("agent-1m-conservative", CONSERVATIVE)])
def test_the_head_runs_the_published_line(profile: str, line: str) -> None:
    deployment = deploy(profile)
    assert serve_argv(deployment, deployment.head) == tuple(line.split(" "))


@pytest.mark.parametrize("profile", PROFILES)
def test_the_worker_differs_in_its_rank_and_in_having_no_api(profile: str) -> None:
    deployment = deploy(profile)
    head = list(serve_argv(deployment, deployment.head))
    head[head.index("--node-rank") + 1] = "1"
    assert list(serve_argv(deployment, deployment.worker)) == [*head, "--headless"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("number", [0, 1])
def test_vllms_parser_takes_every_profile_on_every_rank(profile: str, number: int) -> None:
    deployment = deploy(profile)
    argv = serve_argv(deployment, deployment.ranks[number])
    parsed = parse(argv[1:], FAMILY_LACKS[deployment.family.name])
    check(parsed)
    assert (parsed["model_tag"], parsed["node_rank"]) == (model_path(deployment), number)
    assert parsed["headless"] is (number == 1)
    assert parsed["max_num_seqs"] == deployment.profile.max_num_seqs


@pytest.mark.parametrize(
    ("profile", "size"),
    [
        ("agent-1m", "40"),
        ("coding-1m", "24"),
        ("deep-1m", "16"),
        ("balanced-500k", "24"),
        ("stage-c-c12", "24"),
        ("concurrent-200k", "96"),
        ("agent-1m-conservative", None),
        ("diagnostic-fp8", None),
    ],
)
def test_the_capture_flag_holds_a_full_batch_where_it_was_published(profile: str, size: str | None) -> None:
    deployment = deploy(profile)
    assert value_of("--max-cudagraph-capture-size", serve_argv(deployment, deployment.head)) == size


@pytest.mark.parametrize(
    ("thinking", "kwargs"),
    [
        ("off", {"thinking": False}),
        ("low", {"thinking": True, "reasoning_effort": "low"}),
        ("high", {"thinking": True, "reasoning_effort": "high"}),
        ("max", {"thinking": True, "reasoning_effort": "max"}),
    ],
)
def test_the_thinking_default_is_a_template_argument(thinking: str, kwargs: dict[str, object]) -> None:
    deployment = deploy(given={"thinking": thinking})
    text = value_of("--default-chat-template-kwargs", serve_argv(deployment, deployment.head))
    assert json.loads(text or "") == kwargs


def test_what_is_none_or_off_is_no_flag() -> None:
    off = {
        "draft_tokens": "0",
        "capture_size": "none",
        "generation_config": "null",
        "async_scheduling": "no",
        "chunked_prefill": "no",
        "prompt_tokens_details": "no",
        "long_prefill_token_threshold": "null",
    }
    deployment = deploy(given=off)
    assert not {
        "--speculative-config",
        "--max-cudagraph-capture-size",
        "--generation-config",
        "--async-scheduling",
        "--enable-chunked-prefill",
        "--enable-prompt-tokens-details",
        "--long-prefill-token-threshold",
    } & set(serve_argv(deployment, deployment.head))


def test_stage_c_is_spared_the_flags_that_it_was_never_run_with() -> None:
    deployment = deploy("agent-1m", {"family": "stage-c"})
    argv = serve_argv(deployment, deployment.head)
    assert not FAMILY_LACKS["stage-c"] & set(argv)


def test_extra_flags_come_before_the_rank() -> None:
    deployment = deploy(given={"extra_flags": '{"--jit-monitor-mode": "warn", "--enforce-eager": true}'})
    argv = serve_argv(deployment, deployment.head)
    at = argv.index("--jit-monitor-mode")
    assert argv[at : at + 5] == ("--jit-monitor-mode", "warn", "--enforce-eager", "--nnodes", "2")


def test_the_served_name_is_the_profiles_or_the_models() -> None:
    named = deploy(given={"served_model_name": "m$1 x"})
    assert value_of("--served-model-name", serve_argv(named, named.head)) == "m$1 x"


def test_a_model_without_a_revision_is_served_without_one(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tip.yaml").write_text("name: tip\nid: a/b\nserved_name: tip\nfamilies: [anemll]\n")
    deployment = deploy(given={"model": "tip"}, catalogue=own_catalogue(tmp_path))
    assert serve_argv(deployment, deployment.head)[:3] == ("serve", "a/b", "--served-model-name")


def test_the_flags_of_the_deployment_itself_are_known() -> None:
    own = own_flags(deploy(given={"extra_flags.--seed": "7"}))
    assert {"--max-model-len", "--node-rank", "--headless", "--moe-backend", "--override-generation-config"} <= own
    assert "--seed" not in own
