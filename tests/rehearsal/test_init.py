"""`init` on the rehearsal: its two nodes become an inventory with which `up` succeeds as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.inventory import load_inventory

from .pair import RehearsedPair

HOSTS = ("rehearsal-head", "rehearsal-worker")


@pytest.fixture(name="env")
def _env(rehearsed: RehearsedPair, tmp_path: Path) -> Path:
    """An API that only this machine reaches."""
    path = tmp_path / "env"
    path.write_text("VLLM_HOST=127.0.0.1\n")
    (rehearsed.state / "inventory.yaml").unlink(missing_ok=True)
    return path


def test_up_succeeds_with_what_init_wrote(rehearsed: RehearsedPair, env: Path) -> None:
    result = rehearsed.dspark("init", *HOSTS, "--from-env", str(env), "--output", "json").check().json()["result"]
    assert [each["carried"] for each in result["networks"]] == [["whole", "whole"]]
    inventory = load_inventory(rehearsed.state / "inventory.yaml")
    assert inventory.api.port == rehearsed.ports["api"]  # the nodes are this machine, whose port 8888 may be taken
    assert inventory.worker.fabric.hca == "=rocep1s0f0,roceP2p1s0f0"
    assert inventory.head.hf_home == str(rehearsed.home("head") / ".cache/huggingface")
    try:
        assert rehearsed.called("up", "--output", "json").check().json()["result"]["state"] == "serving"
    finally:
        rehearsed.called("down")


def test_the_rehearsals_own_inventory_is_not_the_one_that_is_written(rehearsed: RehearsedPair, env: Path) -> None:
    own = rehearsed.folder / "inventory.yaml"
    before = own.read_text()
    named = env.with_name("mine.yaml")
    rehearsed.dspark("init", *HOSTS, "-i", str(named)).check()
    assert (own.read_text(), load_inventory(named).name) == (before, "spark-pair")
    assert rehearsed.dspark("init", *HOSTS, "--ssh-config", "mine").returncode == 2
