"""The bed's half of the contract; tests/rehearsal/test_contract.py plays the same cases on the embedded pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest

from tests.contract import CASES, Case, NodeName

from .bed import Bed
from .docker_api import DockerApi
from .faults import FaultyNode
from .host import wait_until
from .run import Ran
from .tool import dspark

PORTS = {"api": 8888, "rendezvous": 25000}


class BedPair:
    """See contract.Side."""

    pair = "spark-pair"

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._nodes = {"head": bed.head, "worker": bed.worker}
        self.listeners: list[tuple[FaultyNode, str]] = []

    def dspark(self, *words: str) -> Ran:
        """See Side."""
        return dspark(self._bed, *words)

    def api(self, node: NodeName) -> DockerApi:
        """See Side."""
        return self._nodes[node].api

    def login(self, node: NodeName, script: str) -> Ran:
        """See Side."""
        return self._nodes[node].as_user(["sh", "-c", script])

    def switch(self, node: NodeName, switches: Mapping[str, Any]) -> None:
        """See Side."""
        self._nodes[node].stub(**switches)

    def occupy(self, node: NodeName, port: Literal["api", "rendezvous"]) -> None:
        """See Side."""
        host = self._nodes[node]
        listen = f"setsid python3 -m http.server {PORTS[port]} > /dev/null 2>&1 & echo $!"
        self.listeners.append((host, host.exec(["sh", "-c", listen]).check().stdout.strip()))
        wait_until(lambda: PORTS[port] in host.listening(), what=f"port {PORTS[port]}")


@pytest.fixture(name="side")
def _side(bed: Bed) -> Iterator[BedPair]:
    side = BedPair(bed)
    yield side
    for host, pid in side.listeners:
        host.exec(["kill", pid]).check()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_two_real_hosts_do_what_the_contract_says(side: BedPair, case: Case) -> None:
    case.play(side)
