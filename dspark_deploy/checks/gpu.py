"""The GPU: there, its driver loaded, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, fine, unknown
from dspark_deploy.facts.node import Process


def _present(case: Case) -> Iterator[Verdict]:
    if case.workload is not None and not case.workload.family.gpu:
        return
    for node, known in case.facts.items():
        if known.gpus:
            gpu = known.gpus[0]
            yield fine(f"{node}: {gpu.name}, driver {gpu.driver}", node)
        else:
            why = known.missing.get("gpus", "nvidia-smi names none")
            yield bad(f"{node}: no GPU is found: {why}", f"on {node}: nvidia-smi; load or mend the driver", node)


def _holders(case: Case) -> Iterator[Verdict]:
    for node, known in case.facts.items():
        if "gpu_processes" in known.missing:
            yield unknown(f"{node}: who holds the GPU is not known: {known.missing['gpu_processes']}", node)
            continue
        own = {container.id for container in case.situation.own[node]}
        others = [process for process in known.gpu_processes if process.container not in own]
        if others:
            message = f"{node}: the GPU is held by {', '.join(map(described, others))}"
            yield bad(message, f"on {node}: end it, or give this pair what it leaves free", node)
        elif known.gpus:
            yield fine(f"{node}: nobody else holds the GPU", node)


def described(process: Process) -> str:
    """For messages: name, size and whereabouts."""
    held = f" with {process.held_bytes / 2**30:.1f} GiB" if process.held_bytes else ""
    where = f" in container {process.container[:12]}" if process.container else ""
    return f"{process.name} (pid {process.pid}{where}){held}"


CHECKS = (
    Check("gpu-present", "gpu", "fail", ("F124",), _present),
    Check("gpu-free", "gpu", "warn", ("F29",), _holders),
)
