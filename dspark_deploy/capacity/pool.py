"""The KV pool of a deployment: published, or predicted from memory and shape.

The runtime prints pool = concurrency x max_model_len, where concurrency is a rank's KV memory over the bytes that one
request of the longest length may hold; the smaller rank counts. That a pool is smaller does not mean that less fits:
for equal memory a shorter max_model_len makes a smaller pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from dspark_deploy.capacity.measurements import Boot, Measurements, MemoryRule, PoolRule

GIB = 2**30
_WINDOW = 128  # tokens of this model's sliding window: taken to be, not published


@dataclass(frozen=True, slots=True)
class Shape:
    """What a pool depends on."""

    family: str
    model: str
    max_model_len: int  # tokens
    max_num_batched_tokens: int
    draft_tokens: int  # 0: no drafting
    gpu_memory_utilization: float
    kv_cache_dtype: str = "nvfp4_ds_mla"
    max_num_seqs: int = 1  # decides nothing; of two boots the one with as many is nearer


@dataclass(frozen=True, slots=True)
class Prediction:
    """The pool of a boot that has not happened. To warn and to put shapes in order, never to decide."""

    kv_gib: float  # KV memory of the smaller rank
    request_bytes: float  # what one request of the longest length may hold there
    concurrency: float
    pool_tokens: int


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool that a budget is held against."""

    tokens: int
    kind: Literal["given", "recorded", "published", "predicted"]
    source: str


@dataclass(frozen=True, slots=True)
class BootError:
    """How far a prediction was from what a boot announced, as shares of that; None where a value was not published."""

    boot: Boot
    from_kv_memory: float | None  # the boot's own KV memory given: the error of the pool rule alone
    from_node_memory: float | None  # nothing given but the shape: the error of both rules


def request_bytes(rule: PoolRule, max_model_len: int, max_num_batched_tokens: int) -> float:
    """Bytes of one rank that a request of `max_model_len` tokens may hold."""
    step_tokens = max_num_batched_tokens + _WINDOW - 1
    return rule.bytes_per_token * max_model_len + rule.bytes_per_step_token * step_tokens


def predict(rule: PoolRule, kv_gib: float, max_model_len: int, max_num_batched_tokens: int) -> Prediction:
    """The pool that so much KV memory makes."""
    size = request_bytes(rule, max_model_len, max_num_batched_tokens)
    concurrency = kv_gib * GIB / size
    return Prediction(kv_gib, size, concurrency, round(concurrency * max_model_len))


def predict_boot(data: Measurements, shape: Shape, node_gib: float | None = None) -> Prediction | None:
    """The pool of a shape on nodes with so much memory, the smaller one's. None where no rule is known for it."""
    rule = rule_for(data.pool_rules, shape.family, shape.kv_cache_dtype, drafting=shape.draft_tokens > 0)
    if rule is None:
        return None
    kv_gib = kv_memory(data.memory, shape.gpu_memory_utilization, drafting=shape.draft_tokens > 0, node_gib=node_gib)
    return predict(rule, max(kv_gib, 0.0), shape.max_model_len, shape.max_num_batched_tokens)


def kv_memory(
    rule: MemoryRule,
    gpu_memory_utilization: float,
    *,
    drafting: bool,
    node_gib: float | None = None,
    weights_gib: float | None = None,
) -> float:
    """GiB left for the KV cache of a rank; below zero where even the weights don't fit."""
    usual = rule.weights_gib if drafting else rule.weights_undrafted_gib
    return gpu_memory_utilization * (node_gib or rule.node_gib) - (weights_gib or usual) - rule.reserve_gib


def rule_for(rules: Iterable[PoolRule], family: str, kv_cache_dtype: str, *, drafting: bool) -> PoolRule | None:
    """The rule of an image family's KV format."""
    wanted = (family, kv_cache_dtype, drafting)
    return next((each for each in rules if (each.family, each.kv_cache_dtype, each.drafting) == wanted), None)


def find_boot(boots: Iterable[Boot], shape: Shape) -> Boot | None:
    """A boot of this very shape: of several the one with the same drafts and sequences, else the first."""
    fitting = [each for each in boots if _has_shape(each, shape)]
    return min(
        fitting,
        key=lambda each: (each.draft_tokens != shape.draft_tokens, each.max_num_seqs != shape.max_num_seqs),
        default=None,
    )


def choose_pool(
    data: Measurements,
    shape: Shape,
    *,
    given: int | None = None,
    recorded: Sequence[Boot] = (),
    node_gib: float | None = None,
) -> Pool | None:
    """The pool to hold a budget against: given, of the pair's own last boot, published, or predicted.

    `recorded` are the pair's own boots, the newest first. None where nothing is known.
    """
    if given is not None:
        return Pool(given, "given", "--kv-pool")
    own = next((each for each in recorded if _has_shape(each, shape)), None)
    if own is not None:
        return Pool(own.pool_tokens, "recorded", f"this pair's boot {own.name}")
    published = find_boot(data.boots, shape)
    if published is not None:
        return Pool(published.pool_tokens, "published", f"boot {published.name}: {published.source}")
    prediction = predict_boot(refine(data, recorded), shape, node_gib)
    if prediction is None or not prediction.pool_tokens:
        return None
    memory = f"{prediction.kv_gib:.2f} GiB of KV memory on the smaller rank"
    return Pool(prediction.pool_tokens, "predicted", f"{memory}, concurrency {prediction.concurrency:.2f}")


def refine(data: Measurements, recorded: Sequence[Boot]) -> Measurements:
    """The rules as a pair's own boots correct them: the median of what each says. Without boots they stay."""
    rules = tuple(_refined(rule, recorded) for rule in data.pool_rules)
    reserves = [each for each in (_reserve(data.memory, boot) for boot in recorded) if each is not None]
    reserve = max(median(reserves), 0.0) if reserves else data.memory.reserve_gib
    memory = data.memory.model_copy(update={"reserve_gib": reserve})
    return data.model_copy(update={"pool_rules": rules, "memory": memory})


def boot_error(data: Measurements, boot: Boot, step_tokens: int | None = None) -> BootError:
    """A boot, predicted. `step_tokens` stand in for max_num_batched_tokens where it was not published."""
    batched, drafts, share = boot.max_num_batched_tokens or step_tokens, boot.draft_tokens, boot.gpu_memory_utilization
    rule = rule_for(data.pool_rules, boot.family, boot.kv_cache_dtype, drafting=drafts is None or drafts > 0)
    if batched is None or rule is None:
        return BootError(boot, None, None)

    def error(kv_gib: float | None) -> float | None:
        if kv_gib is None:
            return None
        return predict(rule, kv_gib, boot.max_model_len, batched).concurrency / boot.ratio - 1

    left = share and kv_memory(data.memory, share, drafting=rule.drafting, weights_gib=boot.weights_gib)
    return BootError(boot, error(boot.smaller_gib), error(left))


def boot_errors(data: Measurements) -> tuple[BootError, ...]:
    """Every published boot, predicted: what the predictions were worth so far."""
    return tuple(boot_error(data, boot) for boot in data.boots)


def _refined(rule: PoolRule, recorded: Sequence[Boot]) -> PoolRule:
    factors = []
    for boot in recorded:
        batched, kv_gib = boot.max_num_batched_tokens, boot.smaller_gib
        if batched is None or kv_gib is None or not _follows(boot, rule):
            continue
        factors.append(kv_gib * GIB / boot.ratio / request_bytes(rule, boot.max_model_len, batched))
    if not factors:
        return rule
    factor = median(factors)
    changes = {
        "bytes_per_token": rule.bytes_per_token * factor,
        "bytes_per_step_token": rule.bytes_per_step_token * factor,
    }
    return rule.model_copy(update=changes)


def _reserve(rule: MemoryRule, boot: Boot) -> float | None:
    """What a boot says the reserve was."""
    if boot.gpu_memory_utilization is None or boot.smaller_gib is None or boot.draft_tokens is None:
        return None
    bare = rule.model_copy(update={"reserve_gib": 0.0})
    left = kv_memory(bare, boot.gpu_memory_utilization, drafting=boot.draft_tokens > 0, weights_gib=boot.weights_gib)
    return left - boot.smaller_gib


def _has_shape(boot: Boot, shape: Shape) -> bool:
    """Whether everything that a pool depends on is the same. What a boot doesn't say is not the same."""
    return (
        boot.family == shape.family
        and boot.model in {None, shape.model}
        and boot.kv_cache_dtype == shape.kv_cache_dtype
        and boot.max_model_len == shape.max_model_len
        and boot.max_num_batched_tokens == shape.max_num_batched_tokens
        and boot.draft_tokens is not None
        and (boot.draft_tokens > 0) == (shape.draft_tokens > 0)
        and boot.gpu_memory_utilization == shape.gpu_memory_utilization
        and boot.weights_gib is None
    )


def _follows(boot: Boot, rule: PoolRule) -> bool:
    return (
        boot.family == rule.family
        and boot.kv_cache_dtype == rule.kv_cache_dtype
        and boot.draft_tokens is not None
        and (boot.draft_tokens > 0) == rule.drafting
    )
