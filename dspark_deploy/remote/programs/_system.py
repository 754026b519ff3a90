"""The operating system, its memory and its processes, as /etc and /proc tell them."""

from __future__ import annotations

import os
import re
import sys

from dspark_deploy.remote.programs._network import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MEMORY = {
    "total": "MemTotal",
    "available": "MemAvailable",
    "free": "MemFree",
    "cached": "Cached",
    "swap_total": "SwapTotal",
    "swap_free": "SwapFree",
    "cma_total": "CmaTotal",
    "cma_free": "CmaFree",
}
LARGEST = 3  # consumers that are told
LEAST_BYTES = 256 << 20  # less is not worth a name
CONTAINER = re.compile(r"(?:docker[-/]|/)([0-9a-f]{64})")  # in a process's control group, whatever the driver


def read_system(root: str, user: str) -> dict[str, Any]:
    """What runs beneath everything else; see facts/node.py. Null: it can't be read."""
    import resource  # noqa: PLC0415  a shared library of its own; some minimal systems come without

    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    return {
        "os": _assignment(f"{root}/etc/os-release", "PRETTY_NAME"),
        "build": _assignment(f"{root}/etc/dgx-release", "DGX_SWBUILD_VERSION"),
        "kernel": os.uname().release,
        "python": ".".join(map(str, sys.version_info[:3])),
        "linger": os.path.exists(f"{root}/var/lib/systemd/linger/{user}"),
        "memlock_bytes": None if limit == resource.RLIM_INFINITY else limit,
    }


def _assignment(path: str, name: str) -> str | None:
    for line in (read_text(path) or "").splitlines():
        key, equals, value = line.partition("=")
        if equals and key == name:
            return value.strip().strip("\"'") or None
    return None


def read_memory(root: str) -> dict[str, Any]:
    """/proc/meminfo in bytes. Raises OSError, or LookupError where it lacks what every kernel has."""
    with open(f"{root}/proc/meminfo", encoding="ascii") as file:
        rows = dict(line.split(":", 1) for line in file if ":" in line)
    told = {name: int(rows[key].split()[0]) * 1024 for name, key in MEMORY.items() if key in rows}
    if not {"total", "available"} <= set(told):
        raise LookupError(f"{root}/proc/meminfo has no MemTotal or MemAvailable")
    return {**dict.fromkeys(MEMORY, 0), **told, "consumers": []}


def read_processes(root: str) -> tuple[bool, list[dict[str, Any]]]:
    """Whether earlyoom runs, and the processes that hold most memory, the largest first."""
    found, page = [], os.sysconf("SC_PAGE_SIZE")
    earlyoom = False
    for pid in _pids(root):
        try:
            with open(f"{root}/proc/{pid}/stat", "rb") as file:
                head, _, rest = file.read().rpartition(b")")
        except OSError:  # it has ended
            continue
        name = head.partition(b"(")[2].decode(errors="replace")
        earlyoom = earlyoom or name == "earlyoom"
        held = int(rest.split()[21]) * page
        if held >= LEAST_BYTES:
            found.append((held, pid, name))
    largest = sorted(found, reverse=True)[:LARGEST]
    return earlyoom, [process(root, pid, name, held) for held, pid, name in largest]


def process(root: str, pid: int, name: str, held: int | None) -> dict[str, Any]:
    """One process with the container that it runs in."""
    control_group = read_text(f"{root}/proc/{pid}/cgroup") or ""
    inside = CONTAINER.search(control_group)
    return {"pid": pid, "name": name, "held_bytes": held, "container": inside[1] if inside else None}


def _pids(root: str) -> Iterator[int]:
    yield from (int(name) for name in os.listdir(f"{root}/proc") if name.isdigit())
