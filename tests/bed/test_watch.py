"""How soon a rank's end is told, by the engine's own note of when it ended."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest

from .bed import Bed
from .host import wait_until
from .run import words_of
from .tool import DSPARK, nothing_is_left


@pytest.mark.parametrize("node", ["head", "worker"])
def test_a_dead_rank_is_told_within_three_seconds_of_its_death(bed: Bed, node: str) -> None:
    for each in bed.nodes:
        each.stub(load_s=60)
    bed.inventory()
    process = bed.popen([DSPARK, "up"])
    words_of(process, "wait until the API answers")
    host = {"head": bed.head, "worker": bed.worker}[node]
    (container,) = host.containers()

    def state() -> Any:
        return host.api.inspect(container.id)["State"]

    wait_until(lambda: state()["Pid"])
    host.api.kill(container.id)
    wait_until(lambda: state()["Status"] == "exited")
    ended = datetime.fromisoformat(state()["FinishedAt"]).timestamp()
    said = words_of(process, f"[WARN] {node}")
    told_s = time.time() - ended
    said += process.communicate(timeout=60)[1]
    assert process.returncode == 4, said
    assert "exit code 137" in said
    assert f"error: {node}" in said, "the other rank's complaint is no cause"
    assert told_s < 3, f"told {told_s:.2f} s after its end"
    nothing_is_left(bed)
