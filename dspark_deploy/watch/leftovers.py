"""What a rank's processes leave on a node after their container is gone: shared memory, and whoever holds the GPU."""

from __future__ import annotations

from dspark_deploy.errors import DsparkError
from dspark_deploy.facts.node import Container
from dspark_deploy.remote.host import Host

LOOK_S = 15
# Of NCCL, of Python's multiprocessing (vLLM's message queues between its processes), of torch: a container with
# `ipc: host` has them in the node's own /dev/shm, and a process that was killed unlinks none.
SEGMENTS = ("nccl-*", "psm_*", "sem.mp-*", "torch_*", "vllm*")
GPU_HOLDERS = ("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")


def left_over(host: Host, ended: tuple[Container, ...]) -> tuple[str, ...]:
    """What is still there of the ranks that were just ended, a line each. Nothing was ended: nothing is looked for."""
    began = min((container.started_at for container in ended if container.started_at), default=None)
    if began is None:
        return ()
    try:
        return (*_segments(host, began), *_gpu_holders(host))
    except DsparkError as error:
        return (f"what is left there besides is not known: {error.message}",)


def _segments(host: Host, began: str) -> tuple[str, ...]:
    """Shared memory that came after `began`, by the node's own clock, as the container's start is."""
    names = [word for pattern in SEGMENTS for word in ("-o", "-name", pattern)][1:]
    command = ("find", "/dev/shm", "-maxdepth", "1", "-type", "f", "-newermt", began, "(", *names, ")")  # noqa: S108  the node's
    found = host.run(command, timeout_s=LOOK_S)
    paths = found.stdout.split() if found.returncode == 0 else []
    return (f"left in shared memory: {', '.join(sorted(paths))}",) if paths else ()


def _gpu_holders(host: Host) -> tuple[str, ...]:
    found = host.run(GPU_HOLDERS, timeout_s=LOOK_S)
    lines = found.stdout.splitlines() if found.returncode == 0 else []
    holders = [line.strip() for line in lines if line.partition(",")[0].strip().isdigit()]
    return tuple(f"process {holder} still holds the GPU" for holder in holders)
