"""The beginning of a boot: what a rank does by itself, before it meets its peer, and the lines it prints."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from typing import Any

from . import vllm_checks as checks
from . import vllm_host as host
from . import vllm_numbers as numbers
from .vllm_argv import non_default
from .vllm_family import Family
from .vllm_log import API_SERVER, ENGINE_CORE, Death, Log
from .vllm_pair import Lonely


class Alone:
    """One rank as far as its own arguments, environment and model tell; vllm_boot.py goes on from there."""

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
