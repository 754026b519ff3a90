"""What a workload's KV pool depends on."""

from __future__ import annotations

from dspark_deploy.capacity.pool import Shape
from dspark_deploy.plan.resolve import Workload


def shape_of(workload: Workload) -> Shape:
    """Of the boot that would serve it."""
    profile = workload.profile
    return Shape(
        family=workload.family.name,
        model=workload.model.name,
        max_model_len=profile.max_model_len,
        max_num_batched_tokens=profile.max_num_batched_tokens,
        draft_tokens=profile.draft_tokens,
        gpu_memory_utilization=profile.gpu_memory_utilization,
        kv_cache_dtype=profile.kv_cache_dtype,
        max_num_seqs=profile.max_num_seqs,
    )
