"""Numbers that a boot log states: where each stands in its line, and under which name it is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.boot.events import Value

Kind = Literal["int", "float", "str"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A literal that announces figures, and the pattern that reads them from there on. Group names name figures."""

    literal: str
    pattern: re.Pattern[str]
    kinds: tuple[tuple[str, Kind], ...]

    def read(self, text: str, start: int) -> Iterator[tuple[str, Value]]:
        """Figures of a line in which the literal stands at `start`. Nothing where the rest does not fit."""
        match = self.pattern.search(text, start)
        if match is None:
            return
        for name, kind in self.kinds:
            found = match[name]
            if found:
                yield name, _value(found, kind)


def _reading(literal: str, pattern: str, **kinds: Kind) -> Reading:
    return Reading(literal, re.compile(pattern), tuple(kinds.items()))


READINGS = (
    _reading("█  version ", r"version (?P<version>\S+)", version="str"),
    _reading("non-default args: ", r"'model': '(?P<model>[^']+)'", model="str"),
    _reading("non-default args: ", r"'revision': '(?P<revision>[^']+)'", revision="str"),
    _reading("non-default args: ", r"'max_num_seqs': (?P<max_num_seqs>\d+)", max_num_seqs="int"),
    _reading("non-default args: ", r"'num_speculative_tokens': (?P<draft_tokens>\d+)", draft_tokens="int"),
    _reading("non-default args: ", r"'gpu_memory_utilization': (?P<utilization>[\d.]+)", utilization="float"),
    _reading("non-default args: ", r"'kv_cache_dtype': '(?P<kv_cache_dtype>[^']+)'", kv_cache_dtype="str"),
    _reading("Using max model len ", r"len (?P<max_model_len>\d+)", max_model_len="int"),
    _reading("max_num_batched_tokens=", r"=(?P<max_num_batched_tokens>\d+)", max_num_batched_tokens="int"),
    _reading("max_num_scheduled_tokens is set to ", r"set to (?P<scheduled_tokens>\d+)", scheduled_tokens="int"),
    _reading("headless multiproc executor, with", r"address (?P<master>\S+):\d+ for", master="str"),
    _reading("world_size=", r"world_size=(?P<world_size>\d+) rank=", world_size="int"),
    _reading("distributed_init_method=", r"=tcp://(?P<master>\S+?):\d+", master="str"),
    _reading("vLLM is using nccl==", r"nccl==(?P<nccl>[\w.]+)", nccl="str"),
    _reading("Checkpoint size: ", r"size: (?P<checkpoint_gib>[\d.]+) GiB", checkpoint_gib="float"),
    _reading("Checkpoint size: ", r"Available RAM: (?P<available_ram_gib>[\d.]+) GiB", available_ram_gib="float"),
    _reading("Loading weights took ", r"took (?P<weights_s>[\d.]+) seconds", weights_s="float"),
    _reading(
        "Model loading took ",
        r"took (?P<model_gib>[\d.]+) GiB (?:memory )?and (?P<model_loading_s>[\d.]+) seconds",
        model_gib="float",
        model_loading_s="float",
    ),
    _reading("Available KV cache memory: ", r"memory: (?P<kv_gib>-?[\d.]+) GiB", kv_gib="float"),
    _reading("Explicitly set (", r"\((?P<kv_gib>[\d.]+)/[\d.]+\) GiB for KV cache", kv_gib="float"),
    _reading("KV cache size: ", r"size: (?P<kv_pool_tokens>[\d,]+) tokens", kv_pool_tokens="int"),
    _reading(
        "Maximum concurrency for ",
        r"for (?P<concurrency_tokens>[\d,]+) tokens per request: ~?(?P<max_concurrency>[\d.]+)x",
        concurrency_tokens="int",
        max_concurrency="float",
    ),
    _reading(
        "Graph capturing finished in ",
        r"in (?P<capture_s>[\d.]+) secs, took (?P<capture_gib>-?[\d.]+) GiB",
        capture_s="float",
        capture_gib="float",
    ),
    _reading("init engine (profile", r"took (?P<init_engine_s>[\d.]+) s", init_engine_s="float"),
    _reading("Starting vLLM ", r"server(?: \d+)? on (?P<api_url>https?://\S+)", api_url="str"),
)
"""Seconds end in `_s`, memory in `_gib`; tokens are tokens. A draft's `weights_s` is kept as `draft_weights_s`."""

_BAR = re.compile(r"(?P<what>[A-Z][\w .()-]*?): +(?P<percent>\d{1,3})%(?:\|| Completed)")
BARS = ("Loading safetensors checkpoint shards: ", "DeepGEMM warmup: ", "CUDA graphs (")
"""Literals of lines that hold a progress bar."""


def read_bar(text: str, at: int) -> tuple[str, int] | None:
    """Title and per cent of the progress bar near `at`, None where there is none."""
    match = _BAR.search(text, max(0, at - 40))
    return (match["what"], min(100, int(match["percent"]))) if match else None


LONGEST_NUMBER = 20  # characters; more is no figure that a boot states


def _value(found: str, kind: Kind) -> Value:
    """The text as a number. What only looks like one stays text."""
    if len(found) > LONGEST_NUMBER:
        return found
    try:
        match kind:
            case "int":
                return int(found.replace(",", ""))
            case "float":
                return float(found)
            case "str":
                return found
    except ValueError:
        return found
