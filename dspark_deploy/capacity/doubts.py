"""What a prediction makes worth a warning before a boot. Never a reason to refuse: see docs/capacity.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from dspark_deploy.capacity.measurements import Boot, Measurements
from dspark_deploy.capacity.pool import GIB, Shape, boot_errors, find_boot, predict_boot, refine


def pool_doubts(
    data: Measurements, shape: Shape, *, recorded: Sequence[Boot] = (), node_gib: float | None = None
) -> tuple[str, ...]:
    """Sentences for `plan` and `doctor`. `recorded` are the pair's own boots, `node_gib` the smaller node's memory."""
    return tuple(_doubts(refine(data, recorded), shape, recorded, node_gib))


def error_band(data: Measurements) -> str:
    """How far such predictions were from the published boots: `7 % in the middle, +0 % to +74 % at worst`."""
    errors = [each.from_node_memory for each in boot_errors(data) if each.from_node_memory is not None]
    middle = median(abs(each) for each in errors)
    low, high = round(100 * min(errors)), round(100 * max(errors))
    return f"{100 * middle:.0f} % in the middle, {low:+} % to {high:+} % at worst"


def _doubts(data: Measurements, shape: Shape, recorded: Sequence[Boot], node_gib: float | None) -> Iterator[str]:
    predicted = predict_boot(data, shape, node_gib)
    if predicted is None:
        return
    if predicted.kv_gib <= 0:
        yield (
            f"gpu_memory_utilization {shape.gpu_memory_utilization} is predicted to leave nothing for the KV cache: "
            "the boot would end with `No available memory for the cache blocks`"
        )
        return
    if predicted.concurrency < 1:
        yield (
            f"max_model_len {shape.max_model_len} is predicted not to fit once: {predicted.kv_gib:.2f} GiB of KV "
            f"memory, {predicted.request_bytes / GIB:.2f} GiB for one request; the boot would end with `To serve at "
            f"least one request with the model's max seq len ({shape.max_model_len}) ...`"
        )
    known = find_boot((*recorded, *data.boots), shape)
    if known is None:
        yield (
            f"no boot of this shape is on record; predicted are a pool of {predicted.pool_tokens} tokens and a maximum "
            f"concurrency of {predicted.concurrency:.2f} (such predictions were off by {error_band(data)})"
        )
