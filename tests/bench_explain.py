"""What `dspark explain` costs on a log of half a gigabyte, beside `grep -F` over the same literals.

Whole process against whole process, one core each; the log is a boot, months of serving with restarts in between, and
the failure at the very end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.flow.explain import bundled_rules
from tests.boot.corpus import BOOTS, expand

BYTES = 500_000_000
LEAST_MB_S = 30
MOST_MIB = 150
COMMAND = "import sys; from dspark_deploy.__main__ import main; sys.exit(main())"


@dataclass(frozen=True)
class Cost:
    """Of one process. Its own processor time, since the machine is shared."""

    cpu_s: float
    peak_mib: float
    output: str


def bench_explain() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="dspark-bench-") as folder:
        log, literals = Path(folder) / "rank.log", Path(folder) / "literals"
        size = write_log(log)
        literals.write_text("\n".join(bundled_rules().literals) + "\n", encoding="utf-8")
        explain = run([sys.executable, "-c", COMMAND, "explain", log])
        grep = run(["grep", "-F", "-c", "-f", literals, log], LC_ALL="C")
    speed = size / 1e6 / explain.cpu_s
    print(f"explain: {size / 1e6:.0f} MB at {speed:.0f} MB/s of one core (at least {LEAST_MB_S}), ", end="")
    print(f"{explain.peak_mib:.0f} MiB (at most {MOST_MIB}); answer: {explain.output.splitlines()[0]}")
    print(f"  explain / grep -F -f over the same {len(bundled_rules().literals)} literals = ", end="")
    print(f"{explain.cpu_s / grep.cpu_s:.2f} ({explain.cpu_s:.1f} s / {grep.cpu_s:.1f} s)")


def write_log(path: Path, size: int = BYTES) -> int:
    """Write about so many bytes. Returns how many."""
    healthy = expand(BOOTS / "healthy" / "compiled-and-recovered.yaml").logs["head"]
    failing = expand(BOOTS / "first" / "sample-tokens-timeout.yaml").logs["head"]
    serving = b"".join(
        line for line in healthy.splitlines(keepends=True) if b"[loggers.py" in line or b"HTTP/1.1" in line
    )
    written = 0
    with path.open("wb") as file:
        while written < size - len(failing):
            written += file.write(healthy)
            written += sum(file.write(serving) for _ in range(20))
        written += file.write(failing)
    return written


def run(argv: Sequence[str | Path], **environment: str) -> Cost:
    """Run to the end, and what it took."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(argv, stdout=output, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode()
    if process.returncode:
        raise SystemExit(f"{argv[0]} ended with {process.returncode}:\n{text}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


if __name__ == "__main__":
    bench_explain()
