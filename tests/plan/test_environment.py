"""The environment of each rank: the family's switches, the profile's over them, and each rank's own pins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dspark_deploy.plan.environment import environment
from tests.plan.deployments import BUNDLED, PROFILES, deploy, example_inventory, own_catalogue

OWN = {"VLLM_HOST_IP", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_IB_HCA"}


def test_the_pins_of_a_rank_are_its_nodes_own() -> None:
    inventory = example_inventory()
    fabric = inventory.worker.fabric.model_copy(
        update={"interface": "enp1s0f1np1", "hca": "=rocep1s0f1", "gid_index": 5}
    )
    worker = inventory.worker.model_copy(update={"fabric": fabric})
    deployment = deploy(inventory=inventory.model_copy(update={"worker": worker}))
    head, other = (environment(deployment, rank) for rank in deployment.ranks)
    assert {name: head[name] for name in OWN} == {
        "VLLM_HOST_IP": "192.168.177.11",
        "NCCL_SOCKET_IFNAME": "enp1s0f0np0",
        "GLOO_SOCKET_IFNAME": "enp1s0f0np0",
        "TP_SOCKET_IFNAME": "enp1s0f0np0",
        "NCCL_IB_HCA": "=rocep1s0f0,roceP2p1s0f0",
    }
    assert {name: other[name] for name in OWN} == {
        "VLLM_HOST_IP": "192.168.177.12",
        "NCCL_SOCKET_IFNAME": "enp1s0f1np1",
        "GLOO_SOCKET_IFNAME": "enp1s0f1np1",
        "TP_SOCKET_IFNAME": "enp1s0f1np1",
        "NCCL_IB_HCA": "=rocep1s0f1",
    }
    assert "NCCL_IB_GID_INDEX" not in head
    assert other["NCCL_IB_GID_INDEX"] == "5"


@pytest.mark.parametrize("profile", PROFILES)
def test_ranks_differ_in_nothing_else_and_no_value_is_empty(profile: str) -> None:
    deployment = deploy(profile)
    head, worker = (environment(deployment, rank) for rank in deployment.ranks)
    assert {name for name in head.keys() | worker.keys() if head.get(name) != worker.get(name)} == {"VLLM_HOST_IP"}
    assert all(head.values())


@pytest.mark.parametrize("profile", PROFILES)
def test_a_family_gets_only_switches_that_it_registers(profile: str) -> None:
    deployment = deploy(profile)
    names = {name for name in environment(deployment, deployment.head) if name.startswith("VLLM_")}
    assert names <= set(deployment.family.registered)


def test_both_offline_switches_are_set() -> None:
    deployment = deploy()
    pins = environment(deployment, deployment.head)
    assert (pins["HF_HUB_OFFLINE"], pins["TRANSFORMERS_OFFLINE"], pins["HF_HOME"]) == ("1", "1", "/cache/huggingface")


def test_online_both_switches_say_so_and_the_hub_gets_more_time() -> None:
    online = replace(deploy(given={"environment.HF_HUB_ETAG_TIMEOUT": "60"}), offline=False)
    pins = environment(online, online.worker)
    assert (pins["HF_HUB_OFFLINE"], pins["TRANSFORMERS_OFFLINE"]) == ("0", "0")
    assert (pins["HF_HUB_DOWNLOAD_TIMEOUT"], pins["HF_HUB_ETAG_TIMEOUT"]) == ("120", "60")


def test_the_profile_beats_the_family() -> None:
    deployment = deploy(given={"environment.NCCL_DEBUG": "INFO", "environment.VLLM_LOGGING_LEVEL": "DEBUG"})
    pins = environment(deployment, deployment.head)
    assert (pins["NCCL_DEBUG"], pins["VLLM_LOGGING_LEVEL"]) == ("INFO", "DEBUG")


def test_a_family_without_rdma_has_no_hca_pinned(tmp_path: Path) -> None:
    (tmp_path / "families").mkdir()
    text = (BUNDLED / "families" / "anemll.yaml").read_text().replace("name: anemll\n", "name: plain\nrdma: false\n")
    (tmp_path / "families" / "plain.yaml").write_text(text)
    deployment = deploy(given={"family": "plain"}, catalogue=own_catalogue(tmp_path))
    assert "NCCL_IB_HCA" not in environment(deployment, deployment.head)
