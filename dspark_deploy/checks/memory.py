"""Memory: enough for what the profile asks, nothing that eats it, nothing that kills who uses it.

A GB10's GPU shares the machine's memory, so that /proc/meminfo is what counts: nvidia-smi says [N/A].
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, doubtful, fine, unknown
from dspark_deploy.checks.gpu import described
from dspark_deploy.facts.node import Memory, NodeFacts

ID = "memory-available"
MARGIN = 2 * 2**30  # bytes above what is wanted: with less, a page cache that grows while weights are read decides
SWAPPED = 2**30  # bytes in swap: somebody ran short
LEAST_FREE = 0.05  # share of the memory that is in no use at all
CACHE_SHARE = 0.5  # share of the memory that the page cache may hold


def wanted_bytes(utilization: float, memory: Memory) -> int:
    """What vLLM asks for: its share of all the memory there is."""
    return int(utilization * memory.total)


def _available(case: Case) -> Iterator[Verdict]:
    if case.workload is None:
        return
    utilization = case.workload.profile.gpu_memory_utilization
    for node, known in case.facts.items():
        if known.memory is None:
            yield unknown(f"{node}: memory is not known: {known.missing.get('memory', 'no /proc/meminfo')}", node)
        elif case.rank(node) is not None:
            yield _while_serving(case, node, known.memory, utilization)
        else:
            yield judge_memory(node, known.memory, utilization)


def judge_memory(node: str, memory: Memory, utilization: float) -> Verdict:
    """On a node that runs nothing of the pair."""
    wanted = wanted_bytes(utilization, memory)
    short = f"{gib(memory.available)} are available, and gpu_memory_utilization {utilization} is {gib(wanted)}"
    if memory.available >= wanted + MARGIN:
        return fine(f"{node}: {short}", node)
    kept = f"{gib(memory.cached)} of page cache counted in, {gib(memory.free)} in no use"
    held = ", ".join(map(described, memory.consumers))
    message = f"{node}: {short} of {gib(memory.total)} ({kept}{f'; most is held by {held}' if held else ''})"
    if memory.available >= wanted:
        return doubtful(f"{message}: it fits by less than {gib(MARGIN)}", _free_some(node, memory), node)
    return bad(message, _free_some(node, memory), node)


def _free_some(node: str, memory: Memory) -> str:
    largest = floor(memory.available / memory.total * 100) / 100
    return f"free memory on {node}, or --set gpu_memory_utilization={largest:.2f}, the most that fits now"


def _while_serving(case: Case, node: str, memory: Memory, utilization: float) -> Verdict:
    """What the pair's own rank holds comes back when it is stopped; it is judged again then."""
    rank = case.rank(node)
    own = (rank.gpu_memory_utilization if rank else None) or 0.0
    would_be = min(memory.available + wanted_bytes(own, memory), memory.total)
    wanted = wanted_bytes(utilization, memory)
    if would_be >= wanted:
        return fine(f"{node}: its own rank holds its memory; up to {gib(would_be)} once that is stopped", node)
    message = f"{node}: {gib(would_be)} may be available once its own rank is stopped, and {gib(wanted)} are wanted"
    return doubtful(message, "it is judged again after the stop; free memory there before", node)


def _page_cache(case: Case) -> Iterator[Verdict]:
    """Hosts have frozen while weights were read into memory that the page cache had filled."""
    for node, memory in _idle(case):
        if memory.free < LEAST_FREE * memory.total and memory.cached > CACHE_SHARE * memory.total:
            message = f"{node}: the page cache holds {gib(memory.cached)}, and {gib(memory.free)} are in no use"
            yield bad(message, f"on {node}: sync; echo 3 | sudo tee /proc/sys/vm/drop_caches", node)


def _swap(case: Case) -> Iterator[Verdict]:
    for node, memory in _idle(case):
        used = memory.swap_total - memory.swap_free
        if used > SWAPPED:
            message = (
                f"{node}: {gib(used)} lie in swap, though nothing of the pair runs: something runs short of memory"
            )
            yield bad(message, f"on {node}: find it (`top`, by swap), or sudo swapoff -a && sudo swapon -a", node)


def _idle(case: Case) -> Iterator[tuple[str, Memory]]:
    for node, known in case.facts.items():
        if known.memory is not None and case.rank(node) is None:
            yield node, known.memory


def _cma(case: Case) -> Iterator[Verdict]:
    for node, known in case.facts.items():
        memory = known.memory
        if memory is not None and memory.cma_free > memory.cma_total:
            yield bad(_reserved(node, known, memory), _WITHOUT_RESERVE.format(node=node), node)


def _reserved(node: str, known: NodeFacts, memory: Memory) -> str:
    free, total = gib(memory.cma_free), gib(memory.cma_total)
    kernel = known.system.kernel or "the kernel"
    return f"{node}: {kernel} has CmaFree {free} above CmaTotal {total}: a handover reserve takes memory from the GPU"


_WITHOUT_RESERVE = "on {node}: boot with kho=off on the kernel command line, or a kernel 6.17"


def _earlyoom(case: Case) -> Iterator[Verdict]:
    for node, known in case.facts.items():
        if known.system.earlyoom:
            message = f"{node}: earlyoom runs: it ends vLLM when a deep context takes the memory it was given"
            yield bad(message, f"on {node}: sudo systemctl disable --now earlyoom", node)


def gib(size: int) -> str:
    """Bytes as memory is spoken of."""
    return f"{size / 2**30:.1f} GiB"


CHECKS = (
    Check(ID, "memory", "fail", ("F29",), _available),
    Check("page-cache", "memory", "warn", ("F30",), _page_cache),
    Check("swap-used", "memory", "warn", ("F30",), _swap),
    Check("cma-reserve", "memory", "warn", ("F33",), _cma),
    Check("earlyoom", "memory", "warn", ("F37",), _earlyoom),
)
