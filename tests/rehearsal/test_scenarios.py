"""Every scenario: the first `up` meets it and ends as the scenario says, naming the node, and leaves nothing behind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.rehearsal import sshd
from dspark_deploy.rehearsal.background import start_nodes
from dspark_deploy.rehearsal.demand import spec_of
from dspark_deploy.rehearsal.places import Places
from dspark_deploy.rehearsal.scenarios import HEALTHY, Scenario, scenarios
from dspark_deploy.rehearsal.spec import NodeState

from ..contract import NODES
from ..forker import Forker
from .forking import forking, new_forker
from .pair import FAST, RehearsedPair, place

HERE = Wish(directory=Path(), home=Path())
SPEC = spec_of(catalogue_of(HERE), HEALTHY, float(FAST))
# Writing the other models takes most of a start.
SERVED = replace(SPEC, models=tuple(model for model in SPEC.models if model.name.endswith("-0731")))


# What would be waited for until a limit that is meant for real nodes.
GIVES_UP = {"worker-never-meets": ("--rendezvous-timeout", "1s"), "head-never-answers": ("--timeout", "2s")}


@pytest.fixture(name="forker", scope="module")
def _forker() -> Iterator[Forker]:
    forker = new_forker()
    yield forker
    forker.close()


@pytest.fixture(name="pair", params=list(scenarios()))
def _pair(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, forker: Forker
) -> Iterator[tuple[RehearsedPair, Scenario]]:
    """A pair in one scenario, its nodes in this process: a process of its own would only take longer to start."""
    pair = RehearsedPair(place())
    pair.folder.mkdir(parents=True)
    monkeypatch.chdir(pair.folder)
    monkeypatch.setattr(sshd, "subprocess", forking(forker))
    scenario = scenarios()[request.param]
    nodes = start_nodes(Places(pair.folder), replace(SERVED, head=scenario.head, worker=scenario.worker))
    yield pair, scenario
    for node in nodes:
        node.close()
    shutil.rmtree(pair.state)


def test_the_first_up_ends_as_the_scenario_says(
    pair: tuple[RehearsedPair, Scenario], request: pytest.FixtureRequest
) -> None:
    rehearsed, scenario = pair
    inventory = ("-i", str(rehearsed.folder / "inventory.yaml"))
    ran = rehearsed.called("up", *GIVES_UP.get(request.node.callspec.id, ()), *inventory)
    assert ran.returncode == scenario.up, ran
    assert "Traceback" not in ran.stdout + ran.stderr
    if ran.returncode == 0:
        return
    *_, last = ran.stderr.splitlines()
    assert last.startswith("  -> "), ran
    broken = [node for node in NODES if getattr(scenario, node) != NodeState()]
    assert any(node in ran.stderr for node in broken)
    for node in NODES:
        if getattr(scenario, node).dockerd:
            assert rehearsed.api(node).containers() == []
