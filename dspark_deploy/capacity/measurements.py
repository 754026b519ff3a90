"""Published measurements as data: sweeps, boots, and the rules that were fitted to them. profiles/measurements.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from dspark_deploy.bundled import data_folder
from dspark_deploy.strict import Mistake, Name, Strict, Text, read_document, validate

Share = Annotated[float, Field(gt=0, le=1)]


class Row(Strict):
    """What was measured at one prompt length with so many requests at once. None: not published."""

    prompt: PositiveInt  # tokens, nominal
    concurrency: PositiveInt
    ttft_s: PositiveFloat | None = None  # seconds to the first token, time in the queue included
    prefill_tps: PositiveFloat | None = None  # a request's prompt over its TTFT
    decode_tps: PositiveFloat | None = None  # a request's, after its first token
    aggregate_tps: PositiveFloat | None = None  # all requests' output over the wall time, TTFT included
    decode_aggregate_tps: PositiveFloat | None = None  # all requests' output over the time of decoding alone


class Conditions(Strict):
    """What a sweep ran with, as far as it was said; the names are a profile's."""

    gpu_memory_utilization: Share | None = None
    max_num_seqs: PositiveInt | None = None
    max_num_batched_tokens: PositiveInt | None = None
    long_prefill_token_threshold: NonNegativeInt | None = None  # 0: no cap
    draft_tokens: NonNegativeInt | None = None
    thinking: Text | None = None


class Sweep(Strict):
    """Prompt length by concurrency, measured in one go under one scheduler."""

    name: Name
    title: Text
    source: Text
    family: Name
    model: Name
    patches: tuple[Text, ...] = ()  # scheduler patches that it ran with, by file name
    conditions: Conditions = Conditions()
    output_tokens: PositiveInt  # of each request
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    points: tuple[Row, ...] = ()  # single measurements beyond the table

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        places = [(row.prompt, row.concurrency) for row in (*self.rows, *self.points)]
        twice = next((place for place in places if places.count(place) > 1), None)
        if twice is not None:
            raise Mistake(f"{twice[0]} tokens x {twice[1]} stands there twice", remedy="keep one of the two rows")
        return self


class Boot(Strict):
    """What one boot's logs announced. None: not published."""

    name: Name
    source: Text
    family: Name
    model: Name | None = None
    kv_cache_dtype: Text = "nvfp4_ds_mla"
    max_model_len: PositiveInt
    max_num_seqs: PositiveInt | None = None
    max_num_batched_tokens: PositiveInt | None = None
    draft_tokens: NonNegativeInt | None = None  # 0: no drafting
    gpu_memory_utilization: Share | None = None
    weights_gib: PositiveFloat | None = None  # a rank's, where they are not the usual ones
    head_gib: PositiveFloat | None = None  # available KV memory of each rank
    worker_gib: PositiveFloat | None = None
    kv_gib: PositiveFloat | None = None  # the same where it was not said of which rank
    pool_tokens: PositiveInt
    concurrency: PositiveFloat  # as printed: two decimals
    fit: bool = False  # the pool rules were fitted to it

    @property
    def smaller_gib(self) -> float | None:
        """KV memory of the smaller rank, which decides; the only figure there is where the rank was not said."""
        if self.head_gib is not None and self.worker_gib is not None:
            return min(self.head_gib, self.worker_gib)
        return self.kv_gib

    @property
    def ratio(self) -> float:
        """The maximum concurrency with all its digits: the runtime prints pool = ratio x max_model_len."""
        return self.pool_tokens / self.max_model_len


class PoolRule(Strict):
    """Bytes of one rank that a request of the longest length may hold: a part by length, a part by step."""

    family: Name
    drafting: bool
    kv_cache_dtype: Text
    bytes_per_token: PositiveFloat
    bytes_per_step_token: PositiveFloat
    source: Text


class MemoryRule(Strict):
    """What is left for the KV cache of a node's memory."""

    node_gib: PositiveFloat
    weights_gib: PositiveFloat  # a rank's
    weights_undrafted_gib: PositiveFloat
    reserve_gib: NonNegativeFloat
    source: Text


class Measurements(Strict):
    """All of it."""

    sweeps: tuple[Sweep, ...]
    boots: tuple[Boot, ...]
    pool_rules: tuple[PoolRule, ...]
    memory: MemoryRule


def load_measurements() -> Measurements:
    """The bundled file."""
    document = read_document(data_folder("profiles") / "measurements.yaml", absent="reinstall dspark-deploy")
    return validate(Measurements, document.data, document.where)


def load_sweep(path: Path) -> Sweep:
    """A sweep of the user's own: one file that holds what an entry of `sweeps` holds.

    Raises ConfigError with file, line and key.
    """
    document = read_document(path, absent="name a published sweep, or a file that holds one")
    return validate(Sweep, document.data, document.where)
