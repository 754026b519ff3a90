from __future__ import annotations

from dataclasses import replace

import pytest

from dspark_deploy.facts.node import Docker, Listener
from dspark_deploy.facts.parse import parse_probe
from tests.fakes import FakeHost
from tests.samples import IMAGE, container, node_facts


@pytest.mark.parametrize("node", ["head", "worker"])
def test_facts_survive_the_way_from_the_node(node: str) -> None:
    known = replace(
        node_facts(node),
        listeners=(Listener("::", 22),),
        containers=(container(node, state="exited", exit_code=137, oom_killed=True, restarts=2, stop_timeout_s=10),),
        releases=("0123456789ab",),
        docker=Docker("permission", "permission denied", group_pending=True, context="rootless"),
        missing={"compose": "docker: 'compose' is not a docker command."},
    )
    document = FakeHost(known).call("probe", {"pair": "p", "images": [IMAGE], "paths": []}, timeout_s=1)
    parsed = parse_probe(node, document, skew_s=0.0)
    assert replace(parsed, time_s=known.time_s) == known  # its clock goes on
