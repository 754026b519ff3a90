"""A boot, phase by phase, with the lines the real one prints and the numbers that follow from its arguments.

The order and wording were taken from complete logs of production boots of the published images, which the Anemll
project keeps as evidence (branch dspark-nvfp4-a4w4 at e8942c6, 2026-07-18), and of vLLM 0.32.0 on two CPU nodes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from . import vllm_checks as checks
from . import vllm_numbers as numbers
from . import vllm_speed as speed
from .vllm_alone import Alone
from .vllm_log import WORKER, Death, raw

HANG_TURN_S = 0.2


class Boot(Alone):
    """One rank's way from its arguments to serving. `run` goes through all phases."""

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
        """The switches' chance to say something in a phase as it begins, to end it or to hang it."""
        while self._hangs_at(phase):
            time.sleep(HANG_TURN_S)
        switches = self.switches()
        if switches.get("say_at") == phase:
            raw(switches["say"])
        if switches.get("die_at") == phase:
            time.sleep(switches.get("die_after_s", 0))
            raise Death(
                switches.get("die_message", f"RuntimeError: told to die at {phase}"),
                code=switches.get("exit_code", 1),
            )

    def _hangs_at(self, phase: str) -> bool:
        """Asked again and again: a switch that is taken back lets it go on."""
        switches = self.switches()
        return (
            switches.get("hang_at") == phase
            or bool(switches.get("never_rendezvous") and self.rank == 1 and phase == "engine")
            or bool(switches.get("head_never_answers") and self.rank == 0 and phase == "server")
        )

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
