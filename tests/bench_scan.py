"""`dspark budget --scan` over a source tree of 1 GB, against reading the same files once: time, and memory.

Whole process against whole process, turn about, with a warm cache. `python -m tests.bench_scan` runs this part alone.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from dspark_deploy.flow.scan import usable_processes
from tests.bed.tool import DSPARK

ROUNDS = 5
FILES, BYTES = 50_000, 10**9
FOLDERS = 1_000
LIMIT = 1.7
MEMORY_MB = 200
IGNORED = "*.pyc\n__pycache__/\n/build/\n*.log\n.env\nnode_modules\n*.egg-info/\n*.tmp\n/docs/_build/\n!keep.log\n"
READ = """
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            file.read()
"""


def bench_scan() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="dspark-bench-") as folder:
        tree = Path(folder)
        _plant(tree)
        reading: list[str | Path] = [sys.executable, "-c", READ, str(tree)]
        scanning: list[str | Path] = [
            DSPARK,
            "budget",
            "--scan",
            str(tree),
            "--tokenizer",
            "estimate",
            "--output",
            "json",
        ]
        _run(reading)  # fills the cache
        seconds: dict[str, list[float]] = {"read": [], "scan": []}
        peaks = []
        for _ in range(ROUNDS):
            seconds["read"].append(_run(reading)[0])
            took, peak = _run(scanning)
            seconds["scan"].append(took)
            peaks.append(peak)
    ratio = statistics.median(seconds["scan"]) / statistics.median(seconds["read"])
    print(f"scan: budget --scan / reading {FILES} files of {BYTES / 1e9:g} GB = {ratio:.2f} (limit {LIMIT})")
    for name, each in seconds.items():
        print(f"  {name}: median {statistics.median(each):.3f} s, {min(each):.3f} to {max(each):.3f} s")
    processes = 1 + usable_processes()
    print(f"  memory: {max(peaks):.0f} MB in the largest of {processes} processes (limit {MEMORY_MB} in all)")


def _plant(tree: Path) -> None:
    """Source files of every length around 20 kB; one in twenty has Chinese comments."""
    chance = random.Random(1)  # noqa: S311  a tree, not a key
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz_", k=chance.randint(2, 10))) for _ in range(5_000)]
    code = "\n    ".join(" ".join(chance.choices(words, k=8)) for _ in range(4_000)).encode()
    comments = "".join(f"{chr(chance.randint(0x4E00, 0x9FA5))}，" for _ in range(2_000)).encode()  # noqa: RUF001  as in prose
    (tree / ".gitignore").write_text(IGNORED)
    mean = BYTES / FILES
    for number in range(FILES):
        folder = tree / f"package{number % 20}" / f"module{number % FOLDERS}"
        folder.mkdir(parents=True, exist_ok=True)
        size = int(mean * chance.uniform(0.1, 1.9))
        at = chance.randrange(len(code) - size)
        text = code[at : at + size]
        if number % 20 == 0:
            text = comments[: 3 * (size // 30)] + text[3 * (size // 30) :]
        (folder / f"file{number}.{chance.choice(('py', 'ts', 'go', 'md'))}").write_bytes(text)


def _run(argv: Sequence[str | Path]) -> tuple[float, float]:
    """Seconds of wall time, and MB of the largest process."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status:
        raise AssertionError(f"{argv[0]} ended with {status}")
    return seconds, usage.ru_maxrss / 1024


if __name__ == "__main__":
    bench_scan()
