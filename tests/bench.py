"""`make bench`: what dspark costs, as ratios within one run, since machines are shared and noisy.

Whole process against whole process, turn about: `dspark up` against the least that could be done by hand
(tests/bed/floor.py), and `dspark --help` against `import click`. `dspark doctor` has a limit of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.bed.bed import Bed
from tests.bed.packages import install_packages
from tests.bed.tool import DSPARK, result, started
from tests.bench_cache import bench_cache
from tests.bench_explain import bench_explain
from tests.bench_scan import bench_scan

ROUNDS = 7
HELP_ROUNDS = 15
FLOOR = Path(__file__).parent / "bed" / "floor.py"


def main() -> None:
    """Print the figures."""
    install_packages()
    bed = Bed.start()
    try:
        _bench_help()
        _bench_up(bed)
    finally:
        bed.close()
    bench_cache()
    bench_scan()
    bench_explain()


def _bench_help() -> None:
    python = [sys.executable, "-c", "import click"]
    figures = _turn_about(
        {"import click": lambda: _seconds(python), "dspark --help": lambda: _seconds([DSPARK, "--help"])}, HELP_ROUNDS
    )
    _show("start", figures, "import click", "dspark --help", limit=2.5)


def _bench_up(bed: Bed) -> None:
    config = _floor_config(bed)
    reports: list[dict[str, Any]] = []
    connections: list[list[int]] = []

    def up() -> float:
        bed.reset()
        ran = started(bed, "up", "--quiet", "--output", "json").check()
        reports.append(result(ran))
        connections.append([node.ssh_connections() for node in bed.nodes])
        return ran.seconds

    def floor() -> float:
        bed.reset()
        return bed.run([sys.executable, FLOOR, config]).check().seconds

    def again() -> float:
        return started(bed, "up", "--quiet").check().seconds

    up()  # fills the caches of both sides
    figures = _turn_about({"floor": floor, "up": up, "second up": again}, ROUNDS)
    _show("up", figures, "floor", "up", limit=2.0)
    print(f"  second up {statistics.median(figures['second up']):.2f} s (limit 2)")
    phases = {name: [report["seconds"].get(name, 0.0) for report in reports] for name in reports[-1]["seconds"]}
    for name, seconds in phases.items():
        print(f"  {statistics.median(seconds):6.3f} s  {name}")
    print(f"  SSH connections head, worker: {connections[-1]}; bytes pushed: {reports[-1]['pushed_bytes']}")
    seconds = [started(bed, "doctor").check().seconds for _ in range(ROUNDS)]
    print(f"doctor, of the pair that serves: median {statistics.median(seconds):.2f} s (limit 2.5)")


def _floor_config(bed: Bed) -> Path:
    """The rendered files of both nodes, and how to reach them."""
    homes: dict[str, Any] = {f"{node.identity.role}__hf_home": f"{node.home}/.cache/huggingface" for node in bed.nodes}
    files = Path(bed.keys) / "floor"
    started(bed, "render", "--dir", files, **homes).check()
    config: dict[str, Any] = {"known_hosts": str(bed.keys / "known_hosts"), "key": str(bed.keys / "client")}
    (bed.keys / "known_hosts").write_text(bed.known_hosts.read_text())
    for node in bed.nodes:
        role = node.identity.role
        config[role] = {"address": str(node.lan_address), "user": node.user, "files": str(files / role)}
    config["url"] = f"http://{bed.head.lan_address}:8888/v1/models"
    path = bed.keys / "floor.json"
    path.write_text(json.dumps(config))
    return path


def _turn_about(work: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Each in turn, `rounds` times, so that what else the machine does falls on all alike."""
    figures: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            figures[name].append(call())
    return figures


def _show(title: str, figures: dict[str, list[float]], base: str, measured: str, *, limit: float) -> None:
    ratio = statistics.median(figures[measured]) / statistics.median(figures[base])
    print(f"{title}: {measured} / {base} = {ratio:.2f} (limit {limit})")
    for name in (base, measured):
        seconds = figures[name]
        print(f"  {name}: median {statistics.median(seconds):.3f} s, {min(seconds):.3f} to {max(seconds):.3f} s")


def _seconds(argv: Sequence[str | Path]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
