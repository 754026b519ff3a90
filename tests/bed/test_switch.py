"""From one image family to the other on two real hosts, and back."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .bed import Bed
from .tool import dspark, result

STAGE_C = "vllm-dspark-runtime:dspark-nvfp4-stage-c"
UNKNOWN = re.compile(r"Unknown vLLM environment variable detected: (\w+)")
OF_THE_IMAGE = {"VLLM_BUILD_URL", "VLLM_BUILD_COMMIT", "VLLM_BUILD_PIPELINE", "VLLM_IMAGE_TAG"}  # Anemll's own ENV


@pytest.fixture(name="up")
def _up(bed: Bed) -> dict[str, Any]:
    report: dict[str, Any] = result(dspark(bed, "up", "-p", "agent-1m", "--output", "json").check())
    return report


def starts(bed: Bed) -> tuple[str, str]:
    """When the worker's and the head's container were created, as dockerd says it, to the nanosecond."""
    created = [node.api.inspect(node.containers()[0].id)["Created"] for node in (bed.worker, bed.head)]
    return created[0], created[1]


def unknown_variables(bed: Bed) -> list[set[str]]:
    """By node, what vLLM said of its environment."""
    return [set(UNKNOWN.findall(node.logs(node.containers()[0].id))) for node in bed.nodes]


def test_anemll_to_stage_c_and_back_worker_first_each_time(bed: Bed, up: dict[str, Any]) -> None:
    assert unknown_variables(bed) == [OF_THE_IMAGE, OF_THE_IMAGE]
    there = result(dspark(bed, "switch", "stage-c", "--yes", "--output", "json").check())
    assert (there["state"], there["family"], there["profile"]) == ("serving", "stage-c", "agent-1m")
    worker, head = starts(bed)
    assert worker < head
    assert [container.image for node in bed.nodes for container in node.containers()] == [STAGE_C, STAGE_C]
    assert unknown_variables(bed) == [set(), set()]
    back = result(dspark(bed, "switch", "anemll", "--yes", "--output", "json").check())
    assert (back["state"], back["release"]) == ("serving", up["release"])
    worker, head = starts(bed)
    assert worker < head


def test_a_stage_c_image_that_dies_at_boot_brings_anemll_back(bed: Bed, up: dict[str, Any]) -> None:
    bed.worker.stub(**{"stage-c": {"die_at": "load", "die_message": "CUDA error: no kernel image"}})
    ran = dspark(bed, "switch", "stage-c", "--yes")
    assert ran.returncode == 4, ran
    assert "serves again" in ran.stderr
    told = result(dspark(bed, "status", "--output", "json").check())
    assert (told["state"], told["release"]) == ("serving", up["release"])
    records = bed.client / ".local/state/dspark/spark-pair/runs"
    run = max(records.iterdir())  # by the time in its name
    assert "CUDA error: no kernel image" in (run / "worker.log").read_text()
    assert (run / "head.log").read_text()


@pytest.mark.usefixtures("up")
def test_a_stage_c_image_on_one_node_only_stops_nothing(bed: Bed) -> None:
    before = [node.containers() for node in bed.nodes]
    bed.worker.remove_image(STAGE_C)
    ran = dspark(bed, "switch", "stage-c", "--yes")
    assert ran.returncode == 3, ran
    assert "worker" in ran.stderr
    assert [node.containers() for node in bed.nodes] == before
