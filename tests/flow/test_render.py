"""`render` asks no node for what the inventory tells, or for what the family has no use for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.bundled import data_folder
from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main

INVENTORY = """\
name: spark-pair
profile: stage-c-c12
head: {host: nowhere-a.invalid, hf_home: /srv/hf, fabric: {interface: eth1, address: 192.168.177.11}}
worker: {host: nowhere-b.invalid, hf_home: /srv/hf, fabric: {interface: eth1, address: 192.168.177.12}}
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an inventory that names no HCA, and with a family like stage-c that passes no RDMA device."""
    monkeypatch.chdir(tmp_path)
    register_all()
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    text = (data_folder("profiles") / "families/stage-c.yaml").read_text()
    (tmp_path / "profiles/families").mkdir(parents=True)
    (tmp_path / "profiles/families/sockets.yaml").write_text(
        text.replace("name: stage-c", "name: sockets\nrdma: false")
    )
    return tmp_path


def test_a_family_without_rdma_needs_no_hca_in_the_inventory(folder: Path) -> None:
    assert main(["render", "--dir", "out", "--family", "sockets"]) == 0
    assert "infiniband" not in (folder / "out/head/compose.yaml").read_text()
    assert "NCCL_IB_HCA" not in (folder / "out/head/.env").read_text()


def test_with_rdma_what_the_inventory_leaves_open_is_asked_of_the_nodes(folder: Path) -> None:
    assert main(["render", "--dir", "out"]) == 5
    assert not (folder / "out").exists()
