"""A pair's own sweeps, as `bench sweep` kept them, in the shape of published ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from dspark_deploy.capacity.measurements import Conditions, Row, Sweep
from dspark_deploy.flow.record import state_home
from dspark_deploy.flow.wish import Wish
from dspark_deploy.measure.store import Measurement, Origin, Store, SweepResult
from dspark_deploy.measure.sweep import Cell
from dspark_deploy.model import Model

# A condition's name -> the flag that says it.
_FLAGS = {
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "long_prefill_token_threshold": "--long-prefill-token-threshold",
}


def own_sweeps(wish: Wish, pair: str, models: Iterable[Model]) -> tuple[Sweep, ...]:
    """The newest first, of `models` alone. One that is not measured to its end speaks for nothing yet."""
    names = {str(model.id or model.directory): model.name for model in models}
    kept = reversed(Store(state_home(wish.environment, wish.home), pair).all("sweep"))
    return tuple(as_sweep(each, names[each.origin.model]) for each in kept if _is_whole(each, names))


def as_sweep(measurement: Measurement[SweepResult], model: str) -> Sweep:
    """One sweep; cells in which a request failed are left out."""
    origin, result = measurement.origin, measurement.result
    return Sweep(
        name=measurement.id.lower(),
        title=f"this pair's own, of {measurement.began[:10]}, profile {origin.profile}",
        source=f"bench sweep {measurement.id}",
        family=origin.family,
        model=model,
        conditions=_conditions(origin),
        output_tokens=result.plan.output_tokens,
        rows=tuple(_rows(result.cells)),
    )


def _is_whole(measurement: Measurement[SweepResult], names: dict[str, str]) -> bool:
    result = measurement.result
    return measurement.origin.model in names and not result.missing and any(True for _ in _rows(result.cells))


def _rows(cells: Iterable[Cell]) -> Iterator[Row]:
    for cell in cells:
        if cell.ttft_s and not cell.failures and not cell.unfinished:
            yield Row(
                prompt=cell.prompt,
                concurrency=cell.concurrency,
                ttft_s=cell.ttft_s,
                prefill_tps=cell.prefill_tps or None,
                decode_tps=cell.decode_tps or None,
                aggregate_tps=cell.aggregate_tps or None,
            )


def _conditions(origin: Origin) -> Conditions:
    """As the head's command line has them."""
    given = dict(pairwise(origin.argv.get("head", ())))
    return Conditions.model_validate({name: given[flag] for name, flag in _FLAGS.items() if flag in given})
