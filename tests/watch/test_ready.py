from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.watch.ready import Needs, missing, needs_of
from tests.samples import memory, node_facts

NEEDS = Needs(IPv4Address("192.168.177.12"), 0.85)
KNOWN = node_facts("worker")


def test_a_healthy_node_lacks_nothing() -> None:
    assert missing(KNOWN, NEEDS, runs=False) == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"netdevs": ()}, "worker: no interface has the fabric address 192.168.177.12 yet"),
        (
            {"netdevs": tuple(replace(each, up=False) for each in KNOWN.netdevs)},
            "worker: enp1s0f0np0 with the fabric address 192.168.177.12 has no link",
        ),
        (
            {"hca_ports": tuple(replace(each, state="DOWN") for each in KNOWN.hca_ports)},
            "worker: RDMA port rocep1s0f0 is DOWN",
        ),
        (
            {"memory": memory(available=90 * 2**30)},
            "worker: 90.0 GiB of memory are available, and its rank takes 101.1 GiB",
        ),
    ],
)
def test_what_a_node_lacks_is_named(changes: dict[str, Any], says: str) -> None:
    assert missing(replace(KNOWN, **changes), NEEDS, runs=False) == (says,)


def test_the_memory_of_a_rank_that_runs_comes_back_with_its_stop() -> None:
    assert missing(replace(KNOWN, memory=memory(available=2**30)), NEEDS, runs=True) == ()


def test_what_is_not_known_is_not_missing() -> None:
    assert missing(replace(KNOWN, memory=None, netdevs=()), Needs(), runs=False) == ()
    assert needs_of(None) == Needs()


def test_the_needs_stand_in_the_rendered_files() -> None:
    golden = Path(__file__).parents[1] / "golden/agent-1m/worker"
    assert needs_of({path.name: path.read_text() for path in golden.iterdir()}) == NEEDS
