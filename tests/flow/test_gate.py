"""The gate of `up`: offline with complete and equal caches, refused without, and online only when asked and agreed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import CheckRefused, Declined, NodeUnreachable, StepFailed
from tests.flow.stand import Stand
from tests.samples import snapshot_file

NOTHING: dict[str, list[str]] = {"head": [], "worker": []}
ABSENT: dict[str, Any] = {"folder": None, "files": [], "revisions": [], "shards": [], "total_bytes": None}
PARTIAL = {"files": [snapshot_file("/hub/", "config.json", problem="missing", size=None)]}


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def rendered(stand: Stand, node: str) -> str:
    """The environment file of the release that a node keeps."""
    (env,) = (text for path, text in stand.hosts[node].files.items() if path.name == ".env")
    return env.decode()


def test_complete_and_equal_caches_start_offline(stand: Stand) -> None:
    stand.bring_up().up()
    for node in ("head", "worker"):
        assert 'HF_HUB_OFFLINE="1"' in rendered(stand, node)
        assert 'TRANSFORMERS_OFFLINE="1"' in rendered(stand, node)


@pytest.mark.parametrize("node", ["head", "worker"])
@pytest.mark.parametrize("changes", [ABSENT, PARTIAL, {"unreadable": "/hub: Permission denied"}])
def test_an_incomplete_cache_on_either_node_refuses(stand: Stand, node: str, changes: dict[str, Any]) -> None:
    stand.hosts[node].snapshot = changes
    with pytest.raises(CheckRefused) as raised:
        stand.bring_up().up()
    assert raised.value.node == node
    assert raised.value.remedy
    assert stand.running() == NOTHING
    assert {what for host in stand.hosts.values() for what, _ in host.done}.isdisjoint({"receive", "run"})
    assert stand.asked == []


def test_caches_that_differ_refuse(stand: Stand) -> None:
    names = ["config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    stand.head.snapshot = {"files": [snapshot_file("/hub/", name) for name in names]}
    stand.worker.snapshot = {"files": [snapshot_file("/hub/", name, digests={"sha256": "other"}) for name in names]}
    with pytest.raises(CheckRefused, match="different files"):
        stand.bring_up().up()
    assert stand.running() == NOTHING


def test_a_cache_that_can_not_be_read_in_time_refuses(stand: Stand) -> None:
    stand.head.failing["verify_cache"] = StepFailed("head: no answer within 60 s", remedy="look there", node="head")
    with pytest.raises(CheckRefused, match="no answer within 60 s"):
        stand.bring_up().up()


def test_a_node_that_is_lost_meanwhile_is_unreachable(stand: Stand) -> None:
    stand.head.failing["verify_cache"] = NodeUnreachable("head: gone", remedy="…", node="head")
    with pytest.raises(NodeUnreachable):
        stand.bring_up().up()


def test_online_names_the_free_disk_of_both_nodes_and_asks(stand: Stand) -> None:
    stand.worker.snapshot = {**ABSENT, "free_bytes": 52 * 10**9}
    stand.online = True
    stand.bring_up().up()
    (question,) = stand.asked
    assert "head: complete; 1.00 TiB free in " in question
    assert "worker: absent; 48.43 GiB free in " in question
    assert "about 6.89 KiB of 6.89 KiB to fetch" in question
    for node in ("head", "worker"):
        env = rendered(stand, node)
        assert 'HF_HUB_OFFLINE="0"' in env
        assert 'TRANSFORMERS_OFFLINE="0"' in env
        assert 'HF_HUB_DOWNLOAD_TIMEOUT="120"' in env


def test_a_no_to_online_changes_nothing(stand: Stand) -> None:
    stand.worker.snapshot = PARTIAL
    stand.online, stand.agrees = True, False
    with pytest.raises(Declined):
        stand.bring_up().up()
    assert stand.running() == NOTHING
    assert all(host.kept_releases("spark-pair") == [] for host in stand.hosts.values())


def test_online_with_complete_caches_asks_nothing_and_stays_offline(stand: Stand) -> None:
    stand.online = True
    stand.bring_up().up()
    assert stand.asked == []
    assert 'HF_HUB_OFFLINE="1"' in rendered(stand, "head")


def test_what_a_download_does_not_mend_is_said(stand: Stand) -> None:
    stand.head.snapshot = {"files": [snapshot_file("/hub/", "config.json", problem="wrong-size")]}
    stand.online, stand.agrees = True, False
    with pytest.raises(Declined):
        stand.bring_up().up()
    assert "a download does not mend that" in stand.asked[0]
