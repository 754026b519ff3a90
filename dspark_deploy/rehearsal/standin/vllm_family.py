"""How the two image families differ for everything that looks at the engine from outside.

The flag and environment tables were written by vLLM 0.32.0; a family is that, less what its own version does not know,
more what it has of its own. The differences come from the upstream recipe's documentation of both runtimes
(MiaAI-Lab/DeepSeek-V4-Flash-DSpark, docs/ENVS.md and docker-compose files of 2026-08) and from boot logs of the images.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SWITCHES_OF_STAGE_C = (
    "VLLM_USE_B12X_WO_PROJECTION",
    "VLLM_USE_B12X_FP8_GEMM",
    "VLLM_USE_B12X_MHC",
    "VLLM_USE_B12X_SPARSE_INDEXER",
    "VLLM_DSPARK_GPU_REJECTED_CONTEXT_MASK",
    "VLLM_DSPARK_CONFIDENCE_THRESHOLD",
    "VLLM_DSPARK_CONFIDENCE_SCHEDULER",
    "VLLM_DSPARK_LOCAL_ARGMAX",
    "VLLM_DSPARK_REPLICATE_MARKOV_W1",
    "VLLM_DSPARK_FUSED_MARKOV_ARGMAX",
    "VLLM_DSPARK_REFERENCE_KV_QUANT_DEQUANT",
    "VLLM_DSPARK_HARDWARE_SCHEDULER_EARLY_STOP",
    "VLLM_DSV4_B12X_COMPRESSED_MLA",
    "VLLM_DSV4_DSPARK_DEFER_TARGET_CAPTURE",
    "VLLM_DSV4_DSPARK_DEFER_TARGET_CAPTURE_EXACT",
)
KNOWN_TO_BOTH = (
    "VLLM_USE_B12X_MOE",
    "VLLM_B12X_W4A16_FORCE_BLOCKS_PER_SM",
    "VLLM_B12X_W4A16_FORCE_BLOCKS_MAX_M",
    "VLLM_B12X_W4A16_FORCE_TILE_CONFIG",
)
BAKED_IN_UNKNOWN = ("VLLM_BUILD_URL", "VLLM_BUILD_COMMIT", "VLLM_BUILD_PIPELINE", "VLLM_IMAGE_TAG")


class Family(NamedTuple):
    """One runtime, as far as its command line, its environment and its log tell."""

    name: str
    version: str
    nccl: str
    unknown_flags: frozenset[str]  # of the 0.32.0 table
    own_flags: tuple[tuple[str, str], ...]  # flag and type that the 0.32.0 table does not have
    extra_names: tuple[str, ...]
    unknown_names: frozenset[str]  # of the 0.32.0 table
    kv_format_line: str
    auto_breakable_graph: bool


ANEMLL = Family(
    name="anemll",
    version="0.25.2.dev0+g752a3a504.d20260714",
    nccl="2.30.7",
    unknown_flags=frozenset(),
    own_flags=(("--max-num-partial-prefills", "int"), ("--max-long-partial-prefills", "int")),
    extra_names=(
        *KNOWN_TO_BOTH,
        "VLLM_PREFIX_CACHE_RETENTION_INTERVAL",
        "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS",
    ),
    unknown_names=frozenset(BAKED_IN_UNKNOWN),
    kv_format_line="Using DeepSeek V4 padded {dtype} KV cache format.",
    auto_breakable_graph=True,
)
STAGE_C = Family(
    name="stage-c",
    version="0.21.1rc1.dev339",
    nccl="2.29.3",
    unknown_flags=frozenset(
        {
            "--moe-backend",
            "--linear-backend",
            "--long-prefill-token-threshold",
            "--long-prefill-token-threshold-adaptive",
            "--no-long-prefill-token-threshold-adaptive",
            "--enable-prompt-tokens-details",
            "--no-enable-prompt-tokens-details",
            "--jit-monitor-mode",
            "--jit-monitor-verbose",
            "--no-jit-monitor-verbose",
        }
    ),
    own_flags=(("--max-num-partial-prefills", "int"), ("--max-long-partial-prefills", "int")),
    extra_names=(*KNOWN_TO_BOTH, *SWITCHES_OF_STAGE_C, "VLLM_RPC_TIMEOUT"),
    unknown_names=frozenset(
        {
            *BAKED_IN_UNKNOWN,
            "VLLM_PREFIX_CACHE_RETENTION_INTERVAL",
            "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS",
        }
    ),
    kv_format_line="Using probe DeepSeek V4 {dtype} KV cache format",
    auto_breakable_graph=False,
)
FAMILIES = {family.name: family for family in (ANEMLL, STAGE_C)}


def this_family() -> Family:
    """The family of the image this runs in: DSPARK_STANDIN_FAMILY, else the file `family` beside this one."""
    name = os.environ.get("DSPARK_STANDIN_FAMILY")
    beside = HERE / "family"
    if not name and beside.is_file():
        name = beside.read_text(encoding="utf-8").strip()
    return FAMILIES[name or "anemll"]


def known_names(family: Family) -> frozenset[str]:
    """Every VLLM_ name that the family's runtime registers."""
    lines = (HERE / "vllm-envs-0.32.0.tsv").read_text(encoding="utf-8").splitlines()
    table = {line.split("\t", 1)[0] for line in lines if line.startswith("VLLM_")}
    return frozenset((table | set(family.extra_names)) - family.unknown_names)
