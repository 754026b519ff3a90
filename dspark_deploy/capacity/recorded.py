"""A boot of the pair's own, as its record keeps it, in the shape of a published one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from dspark_deploy.capacity.measurements import Boot

Figures = Mapping[str, Any]


def recorded_boot(run: str, *, family: str, model: str, figures: Mapping[str, Figures]) -> Boot | None:
    """`figures` are what each node's log stated (see boot/figures.py). None where they tell of no pool."""
    head, worker = figures.get("head", {}), figures.get("worker", {})
    try:
        return Boot.model_validate(
            {
                "name": run.lower(),
                "source": f"run {run}",
                "family": family,
                "model": model,
                "kv_cache_dtype": head.get("kv_cache_dtype", "auto"),
                "max_model_len": head.get("max_model_len"),
                "max_num_seqs": head.get("max_num_seqs"),
                "max_num_batched_tokens": head.get("max_num_batched_tokens"),
                "draft_tokens": head.get("draft_tokens", 0),
                "gpu_memory_utilization": head.get("utilization"),
                "head_gib": head.get("kv_gib"),
                "worker_gib": worker.get("kv_gib"),
                "pool_tokens": head.get("kv_pool_tokens"),
                "concurrency": head.get("max_concurrency"),
            }
        )
    except ValidationError:  # its logs were cut short, or state something else than a boot of this tool does
        return None
