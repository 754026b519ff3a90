"""The command line of one rank, without the executable.

Flags and their order: MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark, docker-compose.dspark.yml at 489af95.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from dspark_deploy.plan.capture import capture_size
from dspark_deploy.plan.deployment import Deployment, Rank
from dspark_deploy.plan.patches import plugin_flags
from dspark_deploy.profile import Profile

_REASONING = {
    "reasoning_parser": "deepseek_v4",
    "reasoning_start_str": "<think>",
    "reasoning_end_str": "</think>",
}
RANK_FLAGS = ("--node-rank", "--headless")  # whose value is each rank's own; all else is the same on both


def serve_argv(deployment: Deployment, rank: Rank) -> tuple[str, ...]:
    """`serve MODEL --flag value …`: equal on both ranks but for --node-rank and the worker's --headless."""
    extra = deployment.profile.extra_flags.items()
    plugins = plugin_flags(deployment.patches).items()
    flags = (*_serving(deployment), *plugins, *extra, *_distribution(deployment, rank))
    words = [_words(flag, value) for flag, value in flags if flag not in deployment.family.omit_flags]
    return ("serve", model_path(deployment), *chain.from_iterable(words))


def omitted_flags(deployment: Deployment) -> tuple[str, ...]:
    """The flags that the profile asks for and the family does not get."""
    return tuple(
        flag for flag, value in _serving(deployment) if flag in deployment.family.omit_flags and _words(flag, value)
    )


def model_path(deployment: Deployment) -> str:
    """What vLLM is told to serve: a hub id, or a folder below the cache mount."""
    model = deployment.model
    if model.directory is not None:
        return f"{deployment.family.hf_home_in_container}/{model.directory}"
    return str(model.id)


def own_flags(deployment: Deployment) -> frozenset[str]:
    """The flags that are made from the deployment, given or not; a profile's `extra_flags` can't name them again."""
    serving, distribution = _serving(deployment), _distribution(deployment, deployment.worker)
    return frozenset(flag for flag, _ in (*serving, *distribution))


def _serving(deployment: Deployment) -> Iterator[tuple[str, Any]]:
    """What is served and how. None and False are no flag, True is a bare one."""
    profile = deployment.profile
    yield "--revision", deployment.model.revision
    yield "--served-model-name", deployment.served_name
    yield "--host", deployment.api.bind
    yield "--port", deployment.api.port
    yield "--trust-remote-code", True
    yield "--tensor-parallel-size", 2
    yield "--pipeline-parallel-size", 1
    yield from _shape(profile)
    yield "--enable-prefix-caching", True
    yield "--enable-prompt-tokens-details", profile.prompt_tokens_details
    yield "--async-scheduling", profile.async_scheduling
    yield "--enable-chunked-prefill", profile.chunked_prefill
    yield "--speculative-config", _speculation(profile)
    yield "--tokenizer-mode", "deepseek_v4"  # the checkpoint ships Python instead of a chat template
    yield "--distributed-executor-backend", "mp"  # no Ray between the nodes
    yield from deployment.family.add_flags.items()
    yield "--tool-call-parser", "deepseek_v4"
    yield "--enable-auto-tool-choice", True
    yield "--reasoning-parser", "deepseek_v4"
    yield "--reasoning-config", _REASONING
    yield "--default-chat-template-kwargs", _thinking(profile)
    yield "--generation-config", profile.generation_config
    yield "--override-generation-config", profile.override_generation_config or None
    yield "--enable-flashinfer-autotune", True


def _distribution(deployment: Deployment, rank: Rank) -> Iterator[tuple[str, Any]]:
    yield "--nnodes", 2
    yield "--node-rank", rank.number
    yield "--master-addr", deployment.head.address
    yield "--master-port", deployment.master_port
    yield "--headless", rank.headless


def _shape(profile: Profile) -> Iterator[tuple[str, Any]]:
    yield "--kv-cache-dtype", profile.kv_cache_dtype
    yield "--block-size", profile.block_size
    yield "--max-model-len", profile.max_model_len
    yield "--max-num-seqs", profile.max_num_seqs
    yield "--max-num-batched-tokens", profile.max_num_batched_tokens
    yield "--long-prefill-token-threshold", profile.long_prefill_token_threshold
    yield "--max-cudagraph-capture-size", capture_size(profile)
    yield "--gpu-memory-utilization", profile.gpu_memory_utilization


def _speculation(profile: Profile) -> Mapping[str, Any] | None:
    if not profile.draft_tokens:
        return None
    config: dict[str, Any] = {"method": "dspark", "num_speculative_tokens": profile.draft_tokens}
    if profile.draft_sample_method:
        config["draft_sample_method"] = profile.draft_sample_method
    return config


def _thinking(profile: Profile) -> Mapping[str, Any]:
    if profile.thinking == "off":
        return {"thinking": False}
    return {"thinking": True, "reasoning_effort": profile.thinking}


def _words(flag: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        return [flag, json.dumps(value, separators=(",", ":"), ensure_ascii=False)]
    return [flag, str(value)]
