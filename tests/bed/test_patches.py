"""Patches of the user's own on two real hosts: a required one that fails on one node, and what else became of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .bed import Bed
from .tool import dspark, nothing_is_left, result

IMAGE = "ghcr.io/anemll/dspark-vllm-gx10:0.1.1"
APPEND = 'grep -q "# patched" "$VLLM_ROOT/envs.py" || { echo "# patched" >> "$VLLM_ROOT/envs.py"; echo done; }\n'
ON_THE_WORKER = '[ "$VLLM_HOST_IP" = 192.168.177.12 ] || exit 0\necho "anchor not found"\nexit 7\n'


def named(folder: Path, *programs: Any) -> list[dict[str, Any]]:
    return [{"folder": str(folder), "family": "anemll", "image": IMAGE, "programs": list(programs)}]


def test_a_required_one_that_fails_on_one_node_ends_up_and_an_optional_one_is_recorded(
    bed: Bed, tmp_path: Path
) -> None:
    (tmp_path / "append.sh").write_text(APPEND)
    (tmp_path / "worker.sh").write_text(ON_THE_WORKER)
    failed = dspark(bed, "up", patches=named(tmp_path, "append.sh", "worker.sh"))
    assert failed.returncode == 4
    assert "worker.sh: anchor not found" in failed.stderr
    nothing_is_left(bed)
    optional = named(tmp_path, "append.sh", {"file": "worker.sh", "required": False})
    told = result(dspark(bed, "up", "--output", "json", patches=optional).check())["patches"]
    outcomes = {node: [each["outcome"] for each in told[node]] for node in told}
    assert outcomes == {"head": ["applied", "already"], "worker": ["applied", "failed"]}
    assert told["worker"][1]["tail"] == ["anchor not found"]
