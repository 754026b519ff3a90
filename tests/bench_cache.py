"""What verifying a cache costs: a quick look at 48 shards of real sizes, and hashing against `sha256sum` side by side.

Called by tests/bench.py; alone: `python -m tests.bench_cache`. Works in a folder of its own below the temporary one.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.program import BOOTSTRAP, bundled
from tests.cachetree import TENSORS, CacheTree

ROUNDS = 5
QUICK_LIMIT_S = 2.0
RATIO_LIMIT = 0.9
MEMORY_LIMIT_MB = 100
HASHED_BYTES = 3 << 30  # sparse: what is measured is hashing, not this machine's disk
NODE_PYTHON = Path("/usr/bin/python3")


def bench_cache() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="dspark-bench-") as name:
        _bench_quick(Path(name))
    with tempfile.TemporaryDirectory(prefix="dspark-bench-") as name:
        _bench_deep(Path(name))


def _bench_quick(folder: Path) -> None:
    """Two nodes at once, as `up` asks them."""
    trees = {node: CacheTree(folder / node, tensors=TENSORS) for node in ("head", "worker")}
    hosts = {node: LocalHost(node) for node in trees}

    def look(node: str) -> None:
        hosts[node].call("verify_cache", trees[node].request(), timeout_s=60)

    seconds = []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            list(pool.map(look, trees))
            seconds.append(time.perf_counter() - began)
    for host in hosts.values():
        host.close()
    shards = len(trees["head"].shards)
    print(f"cache: quick look at {shards} shards of real sizes with {TENSORS} tensors each, two nodes at once:")
    print(f"  median {statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s (limit {QUICK_LIMIT_S:g})")


def _bench_deep(folder: Path) -> None:
    """Turn about; `sha256sum` gets the same files, as many at once as this machine has processors."""
    tree = CacheTree(folder / "hf", links=False, size=HASHED_BYTES)
    listed = folder / "files"
    listed.write_text("".join(f"{tree.link(name)}\0" for name in tree.shards))
    argv = ["xargs", "-0", "-a", str(listed), "-n", "1", "-P", str(os.cpu_count()), "sha256sum"]
    ours, theirs, memory = [], [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        theirs.append(time.perf_counter() - began)
        seconds, kilobytes = _hash(tree.request(), folder / "home")
        ours.append(seconds)
        memory.append(kilobytes)
    ratio = statistics.median(theirs) / statistics.median(ours)
    gigabytes = HASHED_BYTES / 1e9
    print(f"cache: hashing {gigabytes:.1f} GB: {ratio:.2f} of sha256sum's speed in parallel (at least {RATIO_LIMIT:g})")
    print(f"  hash_cache: median {statistics.median(ours):.2f} s, sha256sum: {statistics.median(theirs):.2f} s")
    print(f"  memory: {max(memory) / 1024:.0f} MB (limit {MEMORY_LIMIT_MB})")


def _hash(request: dict[str, Any], home: Path) -> tuple[float, int]:
    """The program as a node runs it, from its start to its end: seconds and the most memory it had, in KiB."""
    shutil.rmtree(home, ignore_errors=True)  # and with it what the last round has found out
    home.mkdir()
    envelope = {"marker": "dspark ", "payload": 0, "request": request}
    python = NODE_PYTHON if NODE_PYTHON.exists() else Path(sys.executable)
    began = time.perf_counter()
    child = subprocess.Popen(
        [python, "-I", "-S", "-c", BOOTSTRAP],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(home)},
    )
    assert child.stdin
    child.stdin.write(bundled("hash_cache") + json.dumps(envelope).encode() + b"\n")
    child.stdin.flush()
    _, _, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.stdin.close()
    child.returncode = 0
    return seconds, usage.ru_maxrss


if __name__ == "__main__":
    bench_cache()
