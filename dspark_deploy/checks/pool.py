"""The KV pool of a boot that has not happened, from what others and this pair announced. It never stops a start."""

from __future__ import annotations

from collections.abc import Iterator

from dspark_deploy.capacity.doubts import pool_doubts
from dspark_deploy.capacity.pool import GIB, find_boot
from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, fine
from dspark_deploy.plan.shape import shape_of

REMEDY = "the boot settles it; `dspark budget` holds your work against the pool, --set max_model_len=N changes it"


def _pool(case: Case) -> Iterator[Verdict]:
    if case.workload is None or case.measured is None:
        return
    shape = shape_of(case.workload)
    memory = [known.memory.total / GIB for known in case.facts.values() if known.memory is not None]
    doubts = pool_doubts(case.measured, shape, recorded=case.boots, node_gib=min(memory, default=None))
    for doubt in doubts:
        yield bad(doubt, REMEDY)
    known = find_boot((*case.boots, *case.measured.boots), shape)
    if known is not None and not doubts:
        yield fine(f"a boot of this shape announced a KV pool of {known.pool_tokens} tokens ({known.source})")


CHECKS = (Check("kv-pool", "memory", "warn", ("F34", "F35"), _pool),)
