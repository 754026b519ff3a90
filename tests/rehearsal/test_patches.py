"""Patches of the user's own on the embedded pair: run before the engine, told of by both ranks, and fail-closed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..contract import IMAGE, NODES, NOTHING, left
from .pair import RehearsedPair

WORKERS_ADDRESS = "192.168.177.12"
GOOD = """\
import os
from pathlib import Path
path = Path(os.environ["DSPARK_PACKAGES"], "vllm/envs.py")
text = path.read_text()
if "# patched" not in text:
    path.write_text(text + "# patched\\n")
    print("patched", path.name)
"""
PROPOSER = "/usr/local/lib/python3.12/dist-packages/vllm/v1/__init__.py"
PLUGIN = """\
[project]
name = "gb10-hybrid"
version = "0.1.0"
[project.entry-points."vllm.general_plugins"]
gb10 = "gb10:register"
"""


@pytest.fixture(name="patched")
def _patched(rehearsed: RehearsedPair) -> Iterator[RehearsedPair]:
    """The pair, to be given patches by `named`."""
    plain = (rehearsed.folder / "inventory.yaml").read_text()
    yield rehearsed
    (rehearsed.folder / "inventory.yaml").write_text(plain)


def named(pair: RehearsedPair, folder: Path, *entries: str, image: str = IMAGE) -> None:
    """Write a list of patches into the inventory, each a folder below `folder` and what is used of it."""
    lines = []
    for entry in entries:
        name, _, used = entry.partition(": ")
        lines.append(f"  - {{folder: {folder / name}, family: anemll, image: '{image}', {used}}}\n")
    inventory = pair.folder / "inventory.yaml"
    inventory.write_text(inventory.read_text() + "patches:\n" + "".join(lines))


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", ".").replace("_in_", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def outcomes(told: Any) -> dict[str, list[tuple[str, str, int]]]:
    return {node: [(each["name"], each["outcome"], each["exit_code"]) for each in told[node]] for node in NODES}


def test_what_became_of_each_is_recorded_on_both_ranks(patched: RehearsedPair, tmp_path: Path) -> None:
    write(
        tmp_path / "fixes", good__py=GOOD, idle__sh="exit 0\n", odd__sh='echo "no such place: $DSPARK_FAMILY"; exit 3\n'
    )
    write(tmp_path / "files", init__py="PATCHED = True\n")
    write(tmp_path / "plugin", pyproject__toml=PLUGIN, gb10__py="def register(): ...\n")
    named(
        patched,
        tmp_path,
        "fixes: programs: [good.py, idle.sh, {file: odd.sh, required: false}]",
        f"files: files: {{init.py: {PROPOSER}}}",
        "plugin: plugin: {name: gb10, flags: {--quantization: fp8}}",
    )
    ran = patched.dspark("up", "--output", "json").check()
    result = ran.json()["result"]
    expected = [
        ("1-fixes/good.py", "applied", 0),
        ("1-fixes/idle.sh", "already", 0),
        ("1-fixes/odd.sh", "failed", 3),
        ("3-plugin: plugin gb10", "applied", 0),
    ]
    assert outcomes(result["patches"]) == dict.fromkeys(NODES, expected)
    failed = "worker: optional patch 1-fixes/odd.sh failed (exit 3): no such place: anemll"
    assert failed in ran.stderr
    assert failed in ran.json()["warnings"]
    record = json.loads((Path(result["record"]) / "run.json").read_text())
    assert outcomes(record["patches"]) == outcomes(result["patches"])
    for node in NODES:
        (container,) = patched.api(node).containers()
        inspected = patched.api(node).inspect(container.id)
        assert "VLLM_PLUGINS=gb10" in inspected["Config"]["Env"]
        assert inspected["Config"]["Cmd"][inspected["Config"]["Cmd"].index("--quantization") + 1] == "fp8"
        mounted = {each["Destination"]: each for each in inspected["Mounts"]}
        assert not mounted["/opt/dspark/patches"]["RW"]
        assert Path(mounted[PROPOSER]["Source"]).read_text() == "PATCHED = True\n"
    assert patched.dspark("up", "--output", "json").check().json()["result"]["changed"] is False
    (tmp_path / "fixes/idle.sh").write_text("exit 0  # changed\n")
    plan = patched.dspark("plan", "--output", "json").check().json()["result"]
    assert plan["ends"] == result["release"]
    assert "+exit 0  # changed" in plan["diffs"]["worker"]


def test_a_required_one_that_fails_on_one_node_stops_up_before_the_engine(
    patched: RehearsedPair, tmp_path: Path
) -> None:
    broken = f'[ "$VLLM_HOST_IP" = {WORKERS_ADDRESS} ] || exit 0\necho "anchor not found in scheduler.py"\nexit 7\n'
    write(tmp_path / "fixes", fix__sh=broken)
    named(patched, tmp_path, "fixes: programs: [fix.sh]")
    ran = patched.dspark("up")
    assert ran.returncode == 4, ran
    assert "1-fixes/fix.sh: anchor not found in scheduler.py" in ran.stderr
    assert "required, and failed with exit code 7" in ran.stderr
    assert left(patched) == NOTHING
    (log,) = [path for path in (patched.folder / "runs").rglob("worker.log") if "fix.sh" in path.read_text()]
    assert "Initializing" not in log.read_text()
    assert json.loads(log.with_name("run.json").read_text())["patches"]["worker"][0]["exit_code"] == 7


def test_one_that_is_bound_to_another_image_is_refused(patched: RehearsedPair, tmp_path: Path) -> None:
    write(tmp_path / "files", init__py="PATCHED = True\n")
    named(patched, tmp_path, f"files: files: {{init.py: {PROPOSER}}}", image="sha256:" + "0" * 64)
    ran = patched.dspark("up")
    assert ran.returncode == 3
    assert "is bound to sha256:0000" in ran.stderr
