"""Where each key of upstream's env file goes, or why it goes nowhere.

Source: MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark at 489af95 (2026-08-22): .env.dspark.example, its scripts,
docker-compose.dspark.yml and docs/ENVS.md; .env.dspark.example at 8b659a9 (2026-07-16) for the older names.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

# Per-node keys name the node whose file it is (the head, unless NODE_RANK says 1) or, with WORKER_, the worker.
OWN, WORKER = "own", "worker"

IN_INVENTORY: Mapping[str, str] = {
    "WORKER_HOST": "worker.host",
    "MASTER_ADDR": "head.fabric.address",
    "MASTER_PORT": "master_port",
    "VLLM_HOST": "api.bind",
    "VLLM_PORT": "api.port",
    "DSPARK_RESTART_POLICY": "restart",
    "VLLM_HOST_IP": f"{OWN}.fabric.address",
    "WORKER_VLLM_HOST_IP": f"{WORKER}.fabric.address",
    "NCCL_SOCKET_IFNAME": f"{OWN}.fabric.interface",
    "WORKER_NCCL_SOCKET_IFNAME": f"{WORKER}.fabric.interface",
    "NCCL_IB_HCA": f"{OWN}.fabric.hca",
    "WORKER_NCCL_IB_HCA": f"{WORKER}.fabric.hca",
    "NCCL_IB_GID_INDEX": f"{OWN}.fabric.gid_index",
    "WORKER_NCCL_IB_GID_INDEX": f"{WORKER}.fabric.gid_index",
    "HF_CACHE": f"{OWN}.hf_home",
    "WORKER_HF_CACHE": f"{WORKER}.hf_home",
}
WHOLE_NUMBERS = frozenset({"master_port", "api.port", "head.fabric.gid_index", "worker.fabric.gid_index"})

IN_PROFILE: Mapping[str, str] = {
    "DSPARK_VLLM_IMAGE": "image",
    "DSPARK_IMAGE": "image",
    "SERVED_MODEL_NAME": "served_model_name",
    "MAX_MODEL_LEN": "max_model_len",
    "MAX_NUM_SEQS": "max_num_seqs",
    "MAX_NUM_BATCHED_TOKENS": "max_num_batched_tokens",
    "LONG_PREFILL_TOKEN_THRESHOLD": "long_prefill_token_threshold",
    "GPU_MEMORY_UTILIZATION": "gpu_memory_utilization",
    "GPU_MEMORY_UTILIZATION_TEXT": "gpu_memory_utilization",
    "GPU_MEMORY_UTILIZATION_VISION": "gpu_memory_utilization",
    "KV_CACHE_DTYPE": "kv_cache_dtype",
    "MAX_CUDAGRAPH_CAPTURE_SIZE": "capture_size",
    "MTP_NUM_TOKENS": "draft_tokens",
    "DRAFT_SAMPLE_METHOD": "draft_sample_method",
    "DEFAULT_THINKING": "thinking",
}

MODEL_KEYS = (
    "ABLITERATED",
    "DSPARK_MODEL",
    "DSPARK_MODEL_OFFICIAL",
    "DSPARK_MODEL_ABLITERATED",
    "DSPARK_REVISION",
    "DSPARK_REVISION_ABLITERATED",
)

SOCKETS = ("TP_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "WORKER_TP_SOCKET_IFNAME", "WORKER_GLOO_SOCKET_IFNAME")
API_KEYS = ("VLLM_API_KEY", "DSPARK_API_KEYS")

DERIVED: Mapping[str, str] = {
    "NODE_RANK": "the head is rank 0, the worker rank 1",
    "HEADLESS": "the worker has no API",
    "NCCL_IB_GID_AUTO": "gid_index: auto is the same, a number is a pin",
    **dict.fromkeys(SOCKETS, "each rank gets its own fabric interface for NCCL, GLOO and TP"),
    **dict.fromkeys(
        ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"),
        "a start is offline with complete caches, and online only with `up --online`",
    ),
    "HF_HOME": "the family says where the cache is mounted in the container",
    **dict.fromkeys(
        ("NCCL_IB_GID_MATCH_IP", "WORKER_NCCL_IB_GID_MATCH_IP"),
        "the index is looked for by the node's fabric address",
    ),
    **dict.fromkeys(
        ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT"), "the family's own paths are set"
    ),
    "DSPARK_ENCODING_FILE": "the encoder is taken from the served snapshot",
    "DSPARK_STOP_GRACE": "the family says how long a stop may take",
    "DSPARK_SERVE_MODE": "upstream's script makes it from ENABLE_VL_SIDECAR",
}

_PATCH = "it steers a source patch of upstream's: those are named under `patches`, see docs/patches.md"
_SIDECAR = "the vision sidecar is not started here"
_OWN_FILES = "upstream's scripts alone read it: nothing is copied beside a checkout, and no compose file is shared"
_WAIT = "`dspark up --timeout` says how long to wait"
_DOWNLOAD = "it belongs to upstream's download; a start downloads nothing unless with `up --online`"
_PLUGIN = "the gb10_hybrid_nvfp4 plugin is named under `patches`, see docs/patches.md"
_BUILD = "images are not built here"
SECRET = "a key is never copied: name a file that holds it alone as api.key_file"  # noqa: S105  a reason, not a secret

# The first pattern that fits. `*` is any text.
LEFT_OUT: Mapping[str, str] = {
    "VLLM_API_KEY": SECRET,
    "DSPARK_API_KEY*": SECRET,
    "HF_TOKEN": "nothing is downloaded with it; `hf auth login` on the node keeps it there",
    "HUGGING_FACE_HUB_TOKEN": "nothing is downloaded with it; `hf auth login` on the node keeps it there",
    "DSPARK_SKIP_*": _PATCH,
    "DSPARK_ENABLE_*": _PATCH,
    "DSPARK_*_HOTFIX": _PATCH,
    "DSPARK_MAX_INFLIGHT_PREFILLS": _PATCH,
    "DSPARK_ISSUE43_SCHED_DIAG": _PATCH,
    "DSPARK_SUPPRESS_STOPS_IN_REASONING": _PATCH,
    "VLLM_SUPPRESS_STOPS_IN_REASONING": _PATCH,
    "DSPARK_PATCHES_DIR": _PATCH,
    "DSPARK_PROPOSER_FILE": _PATCH,
    "ENABLE_VL_SIDECAR": _SIDECAR,
    "VL_SIDECAR_*": _SIDECAR,
    "PREPARE_VL_SIDECAR_MODEL": _SIDECAR,
    "INSTALL_VISION_MCP": _SIDECAR,
    "VISION_MCP_HARNESSES": _SIDECAR,
    "SIDECAR_COMPOSE_FILE": _SIDECAR,
    "ENABLE_VLLM_GB10_PATCH": _PLUGIN,
    "VLLM_GB10_PATCH_DIR": _PLUGIN,
    "GB10_HYBRID_NVFP4_M_THRESHOLD": _PLUGIN,
    "VLLM_PLUGINS": _PLUGIN,
    "WORKER_DIR": _OWN_FILES,
    "WORKER_SCRIPT_DIR": _OWN_FILES,
    "DSPARK_TMP_HOST": _OWN_FILES,
    "DSPARK_HF_CACHE": _OWN_FILES,
    "ENV_FILE": _OWN_FILES,
    "COMPOSE_FILE": _OWN_FILES,
    "COMPOSE_DISABLE_ENV_FILE": _OWN_FILES,
    "PROJECT_NAME": "the inventory's `name` is the compose project",
    "LEGACY_PROJECT_NAME": "the inventory's `name` is the compose project",
    "COMPOSE_PROJECT_NAME": "the inventory's `name` is the compose project",
    "WAIT_ATTEMPTS": _WAIT,
    "WAIT_SECONDS": _WAIT,
    "API_URL": "the API is asked where api.bind and api.port say",
    "CHAT_URL": "the API is asked where api.bind and api.port say",
    "HF_HUB_DOWNLOAD_TIMEOUT": _DOWNLOAD,
    "HF_HUB_ETAG_TIMEOUT": _DOWNLOAD,
    "HF_DOWNLOAD_WORKERS": _DOWNLOAD,
    "PREPARE_WORKER": _DOWNLOAD,
    "IMAGE_PYTHON": _DOWNLOAD,
    "DSPARK_BASE_IMAGE": _BUILD,
    "WORKER_BUILD": _BUILD,
    **dict.fromkeys(
        ("UCX_NET_DEVICES", "OMPI_MCA_btl_tcp_if_include"),
        "it names one node's interface, and a profile serves both nodes",
    ),
    "VLLM_TRITON_MLA_SPARSE": "neither image reads it",
    "VLLM_SKIP_INIT_MEMORY_CHECK": "neither image reads it",
}

# What stands in upstream's example where a user fills in his own.
PLACEHOLDERS = frozenset(
    {"worker-host-or-roce-ip", "head-roce-ip", "worker-roce-ip", "rocepXsYfZ", "enpXsYfZnpN", "sk-single-key"}
)

# The pin that upstream's scripts use where the file sets none, and the checkpoint of ABLITERATED=1.
OFFICIAL = "deepseek-ai/DeepSeek-V4-Flash-0731"
OFFICIAL_REVISION = "9e165c30e2704aec5d9d593cce3eebd58bbef1cb"
ABLITERATED = "drowzeys/keys-DeepSeekV4-Flash-GA-0731-Dspark-Abliterated-32-32"


def left_out(name: str) -> str | None:
    """Why a key goes nowhere; None where it is none of those."""
    return next((reason for pattern, reason in LEFT_OUT.items() if fnmatchcase(name, pattern)), None)


def known_keys() -> frozenset[str]:
    """Every key that is spelt out in a table, for slips of the pen."""
    spelt = (name for name in LEFT_OUT if "*" not in name)
    return frozenset({*IN_INVENTORY, *IN_PROFILE, *MODEL_KEYS, *DERIVED, *spelt})
