"""A boot, phase by phase, with the lines the real one prints and the numbers that follow from its arguments.

The order and wording were taken from complete logs of production boots of the published images, which the Anemll
project keeps as evidence (branch dspark-nvfp4-a4w4 at e8942c6, 2026-07-18), and of vLLM 0.32.0 on two CPU nodes.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from . import vllm_checks as checks
from . import vllm_host as host
from . import vllm_numbers as numbers
from . import vllm_speed as speed
from .vllm_argv import non_default
from .vllm_family import Family
from .vllm_log import API_SERVER, ENGINE_CORE, WORKER, Death, Log, raw
from .vllm_pair import Lonely


class Boot:
    """One rank's way from its arguments to serving. `run` goes through all phases."""

    def __init__(self, arguments: Namespace, family: Family, peer: Lonely, log: Log) -> None:
        self.arguments = arguments
        self.family = family
        self.peer = peer
        self.log = log
        self.rank: int = arguments.node_rank
        self.parent = API_SERVER if self.rank == 0 else "parent"
        self.core = ENGINE_CORE if self.rank == 0 else "parent"
        self.pool_tokens = 0
        self._began = time.monotonic()
        self._model: checks.Model | None = None

    def switches(self) -> dict[str, Any]:
        """This rank's fault switches, as they stand now."""
        return host.switches(self.rank, self.family.name)

    def run(self) -> None:
        """Go through every phase in order. Raises Death where the engine ends."""
        steps: list[tuple[str, Callable[[], None]]] = [
            ("arguments", self._arguments),
            ("environment", self._environment),
            ("model", self._model_found),
            ("scheduler", self._scheduler),
            ("engine", self._engine),
            ("rendezvous", self._rendezvous),
            ("nccl", self._nccl),
            ("load", self._load),
            ("shards", self._shards),
            ("draft", self._draft),
            ("loaded", self._loaded),
            ("profile", self._profile),
            ("kv", self._kv),
            ("warmup", self._warmup),
            ("capture", self._capture),
            ("ready", self._ready),
        ]
        self.enter("start")
        for name, step in steps:
            self.enter(name)
            if name != "shards":  # which take their time one by one
                self.pass_time(name)
            step()

    def pass_time(self, phase: str) -> None:
        """Let a phase take its time, where times are followed at all."""
        if scale := self.switches().get("time_scale"):
            time.sleep(speed.boot_s(phase, self.rank) / scale)

    def _load_s(self) -> float:
        switches = self.switches()
        scale = switches.get("time_scale")
        seconds = switches.get("load_s", speed.boot_s("shards", self.rank) if scale else 0)
        return float(seconds) / float(scale or 1)

    def enter(self, phase: str) -> None:
        """The switches' chance to end or hang a phase as it begins."""
        switches = self.switches()
        hangs = {switches.get("hang_at")}
        hangs.add("engine" if switches.get("never_rendezvous") and self.rank == 1 else None)
        hangs.add("server" if switches.get("head_never_answers") and self.rank == 0 else None)
        while phase in hangs:
            time.sleep(1)
        if switches.get("die_at") == phase:
            time.sleep(switches.get("die_after_s", 0))
            raise Death(
                switches.get("die_message", f"RuntimeError: told to die at {phase}"),
                code=switches.get("exit_code", 1),
            )

    # --- before the ranks meet ----------------------------------------------------------------------------------

    def _arguments(self) -> None:
        if self.rank != 0:
            return
        for line in (
            "",
            "       █     █     █▄   ▄█",
            f" ▄▄ ▄█ █     █     █ ▀▄▀ █  version {self.family.version}",
        ):
            self.log.info(self.parent, "utils.py:299", line)
        self.log.info(self.parent, "utils.py:299", f"  █▄█▀ █     █     █     █  model   {self.arguments.model}")
        self.log.info(self.parent, "utils.py:299", "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀  a stand-in: no model runs here")
        self.log.info(self.parent, "utils.py:299", "")
        shown = non_default(self.arguments, self.family)
        self.log.info(self.parent, "utils.py:233", f"non-default args: {shown}")

    def _environment(self) -> None:
        for name in checks.unknown_variables(self.family):
            self.log.warning(self.parent, "envs.py:1801", f"Unknown vLLM environment variable detected: {name}")
        checks.check_variables(self.arguments, self.family)
        checks.check_gpu()

    def _model_found(self) -> None:
        self._model = checks.find_model(self.arguments)
        length = self.arguments.max_model_len
        self.log.info(self.parent, "model.py:540", f"Resolved architecture: {self._model.config['architectures'][0]}")
        self.log.info(self.parent, "model.py:1661", f"Using max model len {length}")
        if self.arguments.speculative_config:
            most = self._model.config.get("max_position_embeddings", length)
            self.log.info(self.parent, "model.py:540", "Resolved architecture: DeepSeekV4MTPModel")
            if most != length:
                message = f"Overriding draft model max model len from {most} to {length}"
                self.log.info(self.parent, "speculative.py:631", message)

    def _scheduler(self) -> None:
        arguments = self.arguments
        if arguments.kv_cache_dtype != "auto":
            message = (
                f"Using {arguments.kv_cache_dtype} data type to store kv cache. It reduces the GPU memory footprint"
            )
            self.log.info(self.parent, "cache.py:216", f"{message} and boosts the performance.")
        message = f"Inferred data_parallel_rank 0 from node_rank {self.rank}"
        self.log.info(self.parent, "arg_utils.py:1676", message)
        batched = arguments.max_num_batched_tokens or 8192
        message = f"Chunked prefill is enabled with max_num_batched_tokens={batched}."
        self.log.info(self.parent, "scheduler.py:231", message)
        if arguments.async_scheduling:
            self.log.info(self.parent, "vllm.py:689", "Asynchronous scheduling is enabled.")
        self._graphs()
        if drafts := self._drafts():
            tokens = numbers.scheduled_tokens(batched, arguments.max_num_seqs or 256, drafts)
            if tokens <= 0:
                raise Death(f"ValueError: max_num_scheduled_tokens ({tokens}) must be positive")
            if tokens < numbers.FULL_BUDGET:
                message = f"max_num_scheduled_tokens is set to {tokens} based on the speculative decoding settings."
                self.log.warning(self.parent, "vllm.py:812", message)
        message = "Model Runner V2 does not yet support the thinking_token_budget request parameter."
        self.log.warning(self.parent, "vllm.py:1020", message)

    def _drafts(self) -> int:
        return int((self.arguments.speculative_config or {}).get("num_speculative_tokens", 0))

    def _graphs(self) -> None:
        if self.family.auto_breakable_graph and "VLLM_USE_BREAKABLE_CUDAGRAPH" not in os.environ:
            message = "Auto-enabling VLLM_USE_BREAKABLE_CUDAGRAPH=1. Set VLLM_USE_BREAKABLE_CUDAGRAPH=0 to opt out."
            self.log.info(self.parent, "vllm.py:818", message)
        wish = self.arguments.max_cudagraph_capture_size
        if wish and (size := numbers.on_grid(wish)) != wish:
            self.log.warning(self.parent, "vllm.py:1391", f"Truncating max_cudagraph_capture_size to {size}")

    def _engine(self) -> None:
        checks.check_host()
        arguments, version = self.arguments, self.family.version
        master = f"{arguments.master_addr}:{arguments.master_port}"
        if self.rank == 0:
            message = f"Initializing a V1 LLM engine (v{version}) with config: model='{arguments.model}', "
            message += f"tokenizer_mode={arguments.tokenizer_mode}, max_seq_len={arguments.max_model_len}, "
            message += (
                f"tensor_parallel_size={arguments.tensor_parallel_size}, kv_cache_dtype={arguments.kv_cache_dtype}"
            )
            self.log.info(self.core, "core.py:107", message)
            message = f"DP group leader: node_rank=0, node_rank_within_dp=0, master_addr={arguments.master_addr}, "
            message += f"mq_connect_ip={arguments.master_addr} (local), world_size={self._world()}, local_world_size=1"
            self.log.info(self.core, "multiproc_executor.py:134", message)
        else:
            message = f"Launching vLLM (v{version}) headless multiproc executor, with head node address {master} "
            self.log.info(self.parent, "serve.py:165", f"{message}for torch.distributed process group.")

    def _world(self) -> int:
        return int(self.arguments.tensor_parallel_size * self.arguments.pipeline_parallel_size)

    # --- together -----------------------------------------------------------------------------------------------

    def _rendezvous(self) -> None:
        method = f"tcp://{self.arguments.master_addr}:{self.arguments.master_port}"
        message = (
            f"world_size={self._world()} rank={self.rank} local_rank=0 distributed_init_method={method} backend=nccl"
        )
        self.log.info(WORKER, "parallel_state.py:1234", message)
        self.peer.meet()

    def _nccl(self) -> None:
        checks.check_interfaces(self.switches().get("gid_index"))
        self.peer.barrier("nccl")
        rank = self.rank
        if rank == 0:
            self.log.info(WORKER, "pynccl.py:111", f"vLLM is using nccl=={self.family.nccl}")
        message = "SymmMemCommunicator: Device capability 12.1 not supported, communicator is not available."
        self.log.warning(WORKER, "symm_mem.py:66", message)
        message = f"rank {rank} in world size {self._world()} is assigned as DP rank 0, PP rank 0, PCP rank 0, "
        self.log.info(WORKER, "parallel_state.py:1464", f"{message}TP rank {rank}, EP rank {rank}, EPLB rank N/A")

    def _load(self) -> None:
        dtype = self.arguments.kv_cache_dtype
        self.log.info(WORKER, "gpu_worker.py:271", "Using V2 Model Runner")
        self.log.knows_its_rank()
        self.log.info(WORKER, "model_runner.py:290", "Loading model from scratch...")
        if getattr(self.arguments, "linear_backend", None) == "flashinfer_b12x":
            raise Death("ValueError: linear backend flashinfer_b12x does not support this checkpoint's quantization")
        self.log.info(WORKER, "deepseek_v4.py:98", "DeepSeek V4 expert_dtype resolved to 'fp4'")
        self.log.info(WORKER, "attention.py:121", self.family.kv_format_line.format(dtype=dtype))
        if (
            getattr(self.arguments, "moe_backend", "auto") == "flashinfer_b12x"
            or os.environ.get("VLLM_USE_B12X_MOE") == "1"
        ):
            self.log.info(WORKER, "mxfp4.py:213", "Using 'B12X_MXFP4' Mxfp4 MoE backend.")
        self.log.info(WORKER, "attention.py:954", "Using FP8 indexer cache for Lightning Indexer.")
        message = "Filesystem type for checkpoints: EXT4. Checkpoint size: 155.43 GiB. Available RAM: 34.17 GiB."
        self.log.info(WORKER, "weight_utils.py:904", message)

    def _shards(self) -> None:
        if self._model is None:
            return
        shards = self._model.shards
        began = last = time.monotonic()
        limit_s = self._load_s()
        for number, name in enumerate(shards, start=1):
            checks.check_shard(self._model.folder, name)
            time.sleep(max(0.0, began + limit_s * number / len(shards) - time.monotonic()))
            if self.rank == 0 and (number % 12 == 0 or time.monotonic() - last > numbers.PROGRESS_EVERY_S):
                last = time.monotonic()
                raw(f"\rLoading safetensors checkpoint shards: {numbers.progress(number, len(shards), last - began)}")
        self.log.info(WORKER, "default_loader.py:384", f"Loading weights took {time.monotonic() - began:.2f} seconds")

    def _draft(self) -> None:
        message = (
            "Prewarmed B12X route-pack capacities (1, 2, 4, 8, 16, 32, 64, 128, 8192) on cuda:0 (experts=256, topk=6)"
        )
        self.log.info(WORKER, "b12x_moe.py:77", message)
        if self._drafts():
            self.log.info(WORKER, "model_runner.py:511", "Using Eagle3 auxiliary layers from config: (41, 42, 43)")
            self.log.info(WORKER, "speculator.py:140", "DSpark draft model loaded: 96 params")
            self.log.info(WORKER, "default_loader.py:384", "Loading weights took 0.00 seconds")

    def _loaded(self) -> None:
        seconds = time.monotonic() - self._began
        self.log.info(WORKER, "model_runner.py:324", f"Model loading took 79.17 GiB and {seconds:.6f} seconds")
        self.peer.barrier("loaded")

    def _profile(self) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        for verb in ("begins to compile", "completes to compile"):
            raw(f"{stamp} [TileLang:tilelang.jit.kernel:INFO]: TileLang {verb} kernel `sparse_mla_fwd`")

    def _kv(self) -> None:
        length = self.arguments.max_model_len
        gib = numbers.kv_gib(self.arguments.gpu_memory_utilization, self.rank)
        if gib <= 0:
            hint = "Try increasing `gpu_memory_utilization` when initializing the engine."
            raise Death(f"ValueError: No available memory for the cache blocks. {hint}")
        self.log.info(WORKER, "gpu_worker.py:371", f"Available KV cache memory: {gib:.2f} GiB")
        self.pool_tokens = int(self.switches().get("pool_tokens") or numbers.pool_tokens(gib, length))
        if self.pool_tokens < length:
            raise Death(
                f"ValueError: To serve at least one request with the model's max seq len ({length}), "
                f"{gib * length / self.pool_tokens:.2f} GiB KV cache is needed, which is larger than the available KV "
                f"cache memory ({gib:.2f} GiB)."
            )
        self.peer.barrier("kv")
        if self.rank == 0:
            self.log.info(self.core, "kv_cache_utils.py:1307", f"GPU KV cache size: {self.pool_tokens:,} tokens")
            message = f"Maximum concurrency for {length:,} tokens per request: {self.pool_tokens / length:.2f}x"
            self.log.info(self.core, "kv_cache_utils.py:1312", message)

    def _warmup(self) -> None:
        if self.family.name == "stage-c" and os.environ.get("VLLM_USE_B12X_FP8_GEMM") == "1":
            raise Death("RuntimeError: Assertion error (deep_gemm/csrc/utils/layout.hpp): layout of the scales")
        if self.arguments.enable_flashinfer_autotune:
            self.log.info(
                WORKER,
                "kernel_warmup.py:69",
                "Autotuning FlashInfer SM120 sparse MLA DSv4 decode with cache: on",
            )
            raw("[Autotuner]: Loaded 24 configs from the cache")
            raw("[Autotuner]: Autotuning process ends")
        if self.family.auto_breakable_graph and os.environ.get("VLLM_USE_BREAKABLE_CUDAGRAPH", "1") == "1":
            self.log.info(WORKER, "breakable_graph.py:41", "Breakable CUDA graph enabled")

    def _capture(self) -> None:
        for kind, count in (("PIECEWISE", 12), ("FULL", 10)):
            raw(f"\rCapturing CUDA graphs ({kind}): 100%|██████████| {count}/{count} [00:00<00:00, 14.02it/s]")
        if self._drafts():
            self.log.info(WORKER, "model_runner.py:702", "Capturing model for DSpark speculator...")
        took = 1.95 if self.rank == 0 else 1.17
        self.log.info(WORKER, "model_runner.py:688", f"Graph capturing finished in 0 secs, took {took} GiB")

    def _ready(self) -> None:
        self.peer.barrier("ready")
        message = "Kernel JIT monitor activated; monitored JIT compilations during inference will use mode=warn."
        self.log.info(WORKER, "jit_monitor.py:58", message)
        if self.rank == 0:
            seconds = time.monotonic() - self._began
            message = f"init engine (profile, create kv cache, warmup model) took {seconds:.2f} seconds"
            self.log.info(self.core, "core.py:301", message)
