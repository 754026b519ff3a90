"""The phases of a boot, the lines that open them, and how long each took on a published boot.

Order, wording and times are those of complete production logs that the Anemll project keeps as evidence (branch
dspark-nvfp4-a4w4 at e8942c6, 2026-07-18), of its 0.1.1 image; other wordings are of vLLM 0.19 and 0.32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum


class Phase(IntEnum):
    """Where a boot is. It only ever goes forward; a later number may be reached without the ones before."""

    PREPARATION = 0  # the container's own steps before vllm
    ARGUMENTS = 1
    ENVIRONMENT = 2
    MODEL = 3
    SCHEDULER = 4
    ENGINE = 5
    RENDEZVOUS = 6  # waits for the other rank, in silence
    NCCL = 7
    LOAD = 8
    WEIGHTS = 9
    PREWARM = 10
    DRAFT = 11
    LOADED = 12  # the faster rank waits for the slower one
    PROFILE = 13
    KV = 14
    WARMUP = 15
    CAPTURE = 16
    ENGINE_READY = 17  # the worker's last line of a boot
    SERVER = 18
    READY = 19  # the head serves

    @property
    def label(self) -> str:
        """Its name as data files and reports write it: `engine-ready`."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class About:
    """What people are told of a phase. Seconds from its first line to the next phase's, on the published boot."""

    title: str
    head_s: float
    worker_s: float
    quiet_s: float  # how long nothing may be printed in it before that is unusual


ABOUT: Mapping[Phase, About] = {
    Phase.PREPARATION: About("preparing the container", 0, 0, 60),
    Phase.ARGUMENTS: About("reading arguments", 0, 0, 30),
    Phase.ENVIRONMENT: About("reading the environment", 0, 0, 60),
    Phase.MODEL: About("finding the model", 1, 1, 120),
    Phase.SCHEDULER: About("planning cache and scheduler", 4, 1, 60),
    Phase.ENGINE: About("starting the engine", 3, 4, 60),
    Phase.RENDEZVOUS: About("waiting for the other rank", 1, 6, 600),
    Phase.NCCL: About("connecting over the fabric", 5, 2, 120),
    Phase.LOAD: About("preparing to load", 3, 100, 120),  # the worker shows no bar: it loads in silence
    Phase.WEIGHTS: About("loading weights", 152, 10, 300),
    Phase.PREWARM: About("prewarming kernels", 12, 12, 120),
    Phase.DRAFT: About("loading the draft", 34, 30, 300),
    Phase.LOADED: About("waiting for the slower rank", 3, 53, 600),
    Phase.PROFILE: About("profiling and compiling kernels", 29, 28, 900),
    Phase.KV: About("sizing the KV cache", 7, 7, 120),
    Phase.WARMUP: About("warming up and tuning", 33, 41, 900),
    Phase.CAPTURE: About("capturing graphs", 15, 8, 300),
    Phase.ENGINE_READY: About("engine ready", 4, 0, 120),
    Phase.SERVER: About("starting the server", 0, 0, 60),
    Phase.READY: About("serving", 0, 0, 0),
}


def about(phase: Phase, node: str | None) -> About:
    """What a rank does in a phase. The worker shows no bar: its weights load between two lines of the phase before."""
    return ABOUT[Phase.WEIGHTS if node == "worker" and phase is Phase.LOAD else phase]


MARKERS: tuple[tuple[str, Phase], ...] = (
    ("patched and verified", Phase.PREPARATION),
    ("already applied and verified", Phase.PREPARATION),
    ("dspark prepare: ", Phase.PREPARATION),
    ("non-default args: ", Phase.ARGUMENTS),
    ("Unknown vLLM environment variable detected: ", Phase.ENVIRONMENT),
    ("Resolved architecture: ", Phase.MODEL),
    ("Using max model len ", Phase.MODEL),
    ("Overriding draft model max model len", Phase.MODEL),
    (" data type to store kv cache", Phase.SCHEDULER),
    ("Inferred data_parallel_rank ", Phase.SCHEDULER),
    ("Chunked prefill is enabled with max_num_batched_tokens", Phase.SCHEDULER),
    ("Asynchronous scheduling is enabled", Phase.SCHEDULER),
    ("Auto-enabling VLLM_USE_BREAKABLE_CUDAGRAPH", Phase.SCHEDULER),
    ("max_num_scheduled_tokens is set to ", Phase.SCHEDULER),
    ("Truncating max_cudagraph_capture_size to ", Phase.SCHEDULER),
    ("does not yet support the thinking_token_budget", Phase.SCHEDULER),
    ("Initializing a V1 LLM engine", Phase.ENGINE),
    ("DP group leader: ", Phase.ENGINE),
    ("headless multiproc executor, with head node address ", Phase.ENGINE),
    ("distributed_init_method=", Phase.RENDEZVOUS),
    ("vLLM is using nccl==", Phase.NCCL),
    ("SymmMemCommunicator: ", Phase.NCCL),
    (" all-reduce backends ", Phase.NCCL),
    (" is assigned as DP rank ", Phase.NCCL),
    ("Using V2 Model Runner", Phase.LOAD),
    ("Loading model from scratch", Phase.LOAD),
    ("Starting to load model ", Phase.LOAD),
    ("expert_dtype resolved to ", Phase.LOAD),
    ("_ds_mla KV cache format", Phase.LOAD),
    (" Mxfp4 MoE backend", Phase.LOAD),
    ("indexer cache for Lightning Indexer", Phase.LOAD),
    ("Filesystem type for checkpoints: ", Phase.LOAD),
    ("Loading safetensors checkpoint shards: ", Phase.WEIGHTS),
    ("Loading weights took ", Phase.WEIGHTS),
    ("Prewarmed B12X route-pack capacities", Phase.PREWARM),
    ("Using Eagle3 auxiliary layers", Phase.DRAFT),
    ("DSpark draft model loaded: ", Phase.DRAFT),
    ("Model loading took ", Phase.LOADED),
    ("TileLang begins to compile", Phase.PROFILE),
    ("TileLang completes to compile", Phase.PROFILE),
    ("Available KV cache memory: ", Phase.KV),
    (" GiB for KV cache on node ", Phase.KV),
    ("KV cache size: ", Phase.KV),
    ("Maximum concurrency for ", Phase.KV),
    ("Autotuning FlashInfer ", Phase.WARMUP),
    ("[Autotuner]: ", Phase.WARMUP),
    ("DeepGEMM warmup: ", Phase.WARMUP),
    ("Warming up DeepSeek V4 sparse MLA", Phase.WARMUP),
    ("Breakable CUDA graph enabled", Phase.WARMUP),
    ("Capturing CUDA graphs (", Phase.CAPTURE),
    ("Capturing model for DSpark speculator", Phase.CAPTURE),
    ("Graph capturing finished in ", Phase.CAPTURE),
    ("Capturing dspark CUDA graphs", Phase.CAPTURE),
    ("Kernel JIT monitor activated", Phase.ENGINE_READY),
    ("init engine (profile, create kv cache, warmup model) took ", Phase.ENGINE_READY),
    ("Starting vLLM server on ", Phase.SERVER),
    ("Starting vLLM API server ", Phase.SERVER),
    ("Available routes are:", Phase.SERVER),
    ("Started server process ", Phase.SERVER),
    ("Waiting for application startup", Phase.SERVER),
    ("Application startup complete", Phase.READY),
    ("Avg generation throughput: ", Phase.READY),
)

BEGINNINGS = frozenset({"non-default args: ", "Resolved architecture: ", "Using max model len "})
"""Lines that a parent process prints once in a boot: after the rendezvous they open another boot in the same log."""
