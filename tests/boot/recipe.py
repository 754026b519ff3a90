"""Recipe lines of the corpus as log lines: see corpus.py for their notation."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

START = datetime(2026, 7, 18, 13, 29, 28)  # a log's own clock has no zone
NODES = ("head", "worker")
PIDS = {"A": ("APIServer", 1), "E": ("EngineCore", 137), "W": ("Worker", 189), "T": ("Worker_TP", 189)}
PACKAGES = "/usr/local/lib/python3.12/dist-packages"
ROUTES = (
    "/openapi.json",
    "/load",
    "/version",
    "/health",
    "/metrics",
    "/tokenize",
    "/v1/models",
    "/ping",
    "/invocations",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/generative_scoring",
)
TRACED = (
    "v1/worker/gpu_worker.py",
    "v1/executor/multiproc_executor.py",
    "v1/engine/core.py",
    "tracing/otel.py",
    "model_executor/model_loader/base_loader.py",
)


@dataclass
class LogWriter:
    """One rank's log while it is written."""

    rank: int
    values: Mapping[str, Any]
    random: random.Random
    now: datetime = START
    lines: list[str] = field(default_factory=list)

    def say(self, recipe: str) -> None:
        """Take one recipe line."""
        seconds, _, rest = recipe.partition(" ")
        self.now += timedelta(seconds=float(seconds))
        if rest.startswith("@"):
            name, _, argument = rest[1:].partition(" ")
            self.lines.extend(getattr(self, f"_{name}")(argument.format(**self.values)))
        else:
            self.lines.append(self.line(rest.format(**self.values)))

    def line(self, recipe: str) -> str:
        """`PROCESS LEVEL SOURCE MESSAGE` as the process prints it."""
        process, _, rest = recipe.partition(" ")
        match process:
            case "R":
                return rest
            case "U":
                return f"(APIServer pid=1) INFO:     {rest}"
            case "F":
                source, _, message = rest.partition(" ")
                stamp = self.now.strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
                return f"{self.prefix('T')}{stamp} - INFO - {source} - {message}"
            case _:
                level, source, *words = rest.split(" ", 2)
                at = self.now.strftime("%m-%d %H:%M:%S")
                return f"{self.prefix(process)}{level} {at} [{source}] {''.join(words)}"

    def prefix(self, process: str) -> str:
        """What stands in front of a process's lines."""
        if process not in PIDS:
            return ""
        name, pid = PIDS[process]
        return f"({name}{self.rank if process == 'T' else ''} pid={pid - 15 * self.rank}) "

    # --- directives: names after `@` ------------------------------------------------------------------------------

    def _wait(self, seconds: str) -> Iterator[str]:
        self.now += timedelta(seconds=float(seconds))
        yield from ()

    def _shards(self, arguments: str) -> Iterator[str]:
        """The weights' bar: `COUNT SECONDS`."""
        count, seconds = arguments.split()
        yield from self._shards_until(f"{count} {seconds} {count}")
        yield self.prefix("T")

    def _shards_until(self, arguments: str) -> Iterator[str]:
        """The same up to a shard: `COUNT SECONDS LAST`."""
        count, seconds, last = arguments.split()
        each_s = float(seconds) / int(count)
        for done in range(int(last) + 1):
            times = f"{_clock(each_s * done)}<{_clock(each_s * (int(count) - done))},  {each_s:.2f}s/it"
            share = f"{100 * done // int(count):3d}% Completed | {done}/{count} [{times if done else '00:00<?, ?it/s'}]"
            yield f"{self.prefix('T')}\rLoading safetensors checkpoint shards: {share}"
        self.now += timedelta(seconds=each_s * int(last))

    def _bar(self, arguments: str) -> Iterator[str]:
        title, _, count = arguments.rpartition("|")
        total = int(count)
        states = [0, total // 3, 2 * total // 3, total]
        bars = [
            f"\r{title}: {100 * n // total:3d}%|{'█' * (10 * n // total):10}| {n}/{total} [00:00<00:00]" for n in states
        ]
        yield self.prefix("T") + "".join(bars)

    def _tilelang(self, count: str) -> Iterator[str]:
        for number in range(int(count)):
            kernel = ("mhc_pre_big_fuse_with_norm_tilelang", "mhc_fused_tilelang", "hc_head_fuse_tilelang")[number % 3]
            for verb, place, tail in (("begins", 133, " with `out_idx=None`"), ("completes", 141, "")):
                stamp = self.now.strftime("%Y-%m-%d %H:%M:%S")
                what = f"TileLang {verb} to compile kernel `{kernel}`{tail}"
                yield f"{self.prefix('T')}{stamp}  [TileLang:tilelang.jit.kernel:INFO] (kernel.py:{place}): {what}"
                self.now += timedelta(seconds=2)

    def _nccl(self, count: str) -> Iterator[str]:
        host = f"spark-{NODES[self.rank]}:{189 - 15 * self.rank}:{593 + self.rank} [0] NCCL INFO"
        for number in range(int(count)):
            channel = (
                f"Channel {number % 64:02d}/0 : {number % 2}[0] -> {1 - number % 2}[0] [send] via NET/IB/{number % 2}"
            )
            yield f"{host} {channel if number % 3 else 'NCCL_IB_ADDR_FAMILY set by environment to AF_INET'}"

    def _debug(self, count: str) -> Iterator[str]:
        """What VLLM_LOGGING_LEVEL=DEBUG adds."""
        process = "A" if self.rank == 0 else "P"
        for number in range(int(count)):
            module = f"vllm.model_executor.layers.module_{self.random.randrange(900)}"
            message = f"Lazily imported {module} in {self.random.random():.4f} s ({number} so far)"
            yield self.line(f"{process} DEBUG __init__.py:{self.random.randrange(20, 300)} {message}")

    def _routes(self, _: str) -> Iterator[str]:
        yield self.line("A INFO launcher.py:37 Available routes are:")
        for route in ROUTES:
            yield self.line(f"A INFO launcher.py:46 Route: {route}, Methods: POST")

    def _serve(self, count: str) -> Iterator[str]:
        for number in range(int(count)):
            if number % 8 == 0:
                self.now += timedelta(seconds=10)
                rate = self.random.uniform(20, 80)
                rates = (
                    f"Avg prompt throughput: {10 * rate:.1f} tokens/s, Avg generation throughput: {rate:.1f} tokens/s"
                )
                usage = f"GPU KV cache usage: {self.random.uniform(0, 40):.1f}%, Prefix cache hit rate: 12.5%"
                requests = "Running: 1 reqs, Waiting: 0 reqs"
                yield self.line(f"A INFO loggers.py:273 Engine 000: {rates}, {requests}, {usage}")
            else:
                path = ("GET /health", "GET /metrics", "POST /v1/chat/completions")[number % 3]
                yield self.line(f'U 127.0.0.1:{self.random.randrange(32768, 61000)} - "{path} HTTP/1.1" 200 OK')

    def _idle(self, count: str) -> Iterator[str]:
        for _ in range(int(count)):
            self.now += timedelta(seconds=10)
            yield self.line(
                "A INFO loggers.py:273 Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
                "0.0 tokens/s, Running: 2 reqs, Waiting: 1 reqs, GPU KV cache usage: 8.1%, Prefix cache hit rate: 9.1%"
            )

    def _trace(self, arguments: str) -> Iterator[str]:
        """A traceback's frames: `PROCESS SOURCE DEPTH`, or `R - DEPTH` without a prefix."""
        process, source, depth = arguments.split()
        lead = "" if process == "R" else self.line(f"{process} ERROR {source} ")
        yield f"{lead}Traceback (most recent call last):"
        for _ in range(int(depth)):
            file, number = self.random.choice(TRACED), self.random.randrange(900)
            yield f'{lead}  File "{PACKAGES}/vllm/{file}", line {number}, in run'
            yield f"{lead}    return func(*args, **kwargs)"
            yield f"{lead}           ^^^^^^^^^^^^^^^^^^^^^"

    def _fails(self, arguments: str) -> Iterator[str]:
        """A worker process that raises: `PROCESS DEPTH MESSAGE`, under the executor's own words."""
        process, depth, message = arguments.split(" ", 2)
        yield self.line(f"{process} ERROR multiproc_executor.py:898 WorkerProc failed to start.")
        yield from self._trace(f"{process} multiproc_executor.py:898 {depth}")
        yield self.line(f"{process} ERROR multiproc_executor.py:898 {message}")

    def _core_fails(self, depth: str) -> Iterator[str]:
        """What the head's other processes say once its worker process could not start."""
        yield self.line("E ERROR core.py:1138 EngineCore failed to start.")
        yield from self._trace(f"E core.py:1138 {depth}")
        background = "WorkerProc initialization failed due to an exception in a background process."
        yield self.line(f"E ERROR core.py:1138 Exception: {background} See stack trace for root cause.")
        yield f"{self.prefix('A')}Traceback (most recent call last):"
        cause = "Engine core initialization failed. See root cause above. Failed core proc(s): {}"
        yield f"{self.prefix('A')}RuntimeError: {cause}"

    def _headless_fails(self, depth: str) -> Iterator[str]:
        """The same on the worker, whose parent has no prefix."""
        yield self.line("P INFO multiproc_executor.py:426 [shutdown] Executor: waiting for worker exit count=1")
        yield from self._trace(f"R - {depth}")
        background = "WorkerProc initialization failed due to an exception in a background process."
        yield f"Exception: {background} See stack trace for root cause."

    def _peer_lost(self, times: str) -> Iterator[str]:
        """What a rank says when the store on the head goes away under it."""
        for _ in range(int(times)):
            self.now += timedelta(seconds=1)
            stamp = self.now.strftime("W%m%d %H:%M:%S.%f").replace("W0", "W")
            remote = f"remote=[::ffff:{self.values['master']}]:25000"
            store = (
                f"[rank{self.rank}]:[{stamp} TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=30, {remote})"
            )
            closed = "Connection was likely closed. Did the remote server shutdown or crash?"
            yield f"{store}: Failed to recv, got 0 bytes. {closed}"
            place = "/pytorch/torch/csrc/distributed/c10d/Utils.hpp:682"
            yield f"Exception raised from recvBytes at {place} (most recent call first):"
            yield from self._frames("7")
            group = f"ProcessGroupNCCL.cpp:1826] [PG ID 0 PG GUID 0 Rank {self.rank}]"
            flag = 'Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early)'
            yield f"[rank{self.rank}]:[{stamp} {group} {flag}, with error: Broken pipe"

    def _engine_dies(self, depth: str) -> Iterator[str]:
        """The head's API server once its engine is gone."""
        yield self.line("A ERROR async_llm.py:708 AsyncLLM output_handler failed.")
        yield from self._trace(f"A async_llm.py:708 {depth}")
        cause = "EngineCore encountered an issue. See stack trace (above) for the root cause."
        yield self.line(f"A ERROR async_llm.py:708 vllm.v1.engine.exceptions.EngineDeadError: {cause}")
        yield self.line('U 127.0.0.1:41212 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error')
        yield self.line("U Shutting down")
        yield self.line("U Finished server process [1]")

    def _frames(self, count: str) -> Iterator[str]:
        """A C++ backtrace, as c10 prints it."""
        for number in range(int(count)):
            address = f"0x{self.random.randrange(16**12):012x}"
            library = f"{PACKAGES}/torch/lib/libtorch_cpu.so"
            yield f"frame #{number}: <unknown function> + 0x66f513c ({address} in {library})"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
