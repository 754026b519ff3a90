from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from dspark_deploy.errors import StepFailed
from dspark_deploy.remote.local import LocalHost

REQUEST = {"pair": "spark-pair", "owner": {"who": "me@laptop", "command": "dspark up"}}


def test_one_holder_at_a_time_and_the_other_is_told_who(local: LocalHost) -> None:
    holder = local.start("lock", REQUEST, timeout_s=5)
    assert holder.receive(timeout_s=5) == {"locked": True}
    answer = local.call("lock", {**REQUEST, "owner": {"who": "somebody else"}}, timeout_s=5)
    assert answer["locked"] is False
    assert answer["owner"]["who"] == "me@laptop"
    assert answer["owner"]["since"].endswith("Z")


def test_it_is_free_once_its_session_is_closed(local: LocalHost, home: Path) -> None:
    holder = local.start("lock", REQUEST, timeout_s=5)
    holder.receive(timeout_s=5)
    holder.close()
    assert not (home / ".local/share/dspark/spark-pair/lock.json").exists()
    assert local.call("lock", REQUEST, timeout_s=5) == {"locked": True}


def test_it_is_free_without_a_heartbeat(local: LocalHost) -> None:
    silent = local.start("lock", {**REQUEST, "idle_s": 0.05}, timeout_s=5)
    assert silent.receive(timeout_s=5) == {"locked": True}
    with pytest.raises(StepFailed, match="ended without an answer"):
        silent.receive(timeout_s=5)
    assert local.call("lock", REQUEST, timeout_s=5) == {"locked": True}


def test_a_heartbeat_keeps_it(local: LocalHost) -> None:
    holder = local.start("lock", {**REQUEST, "idle_s": 5}, timeout_s=5)
    holder.receive(timeout_s=5)
    holder.beat()
    assert local.call("lock", REQUEST, timeout_s=5)["locked"] is False


def test_pairs_do_not_hinder_each_other(local: LocalHost) -> None:
    local.start("lock", REQUEST, timeout_s=5).receive(timeout_s=5)
    assert local.call("lock", {**REQUEST, "pair": "another"}, timeout_s=5) == {"locked": True}


def test_its_folder_is_closed_to_others(local: LocalHost, home: Path) -> None:
    folder = home / ".local/share/dspark/spark-pair"
    folder.mkdir(parents=True, mode=0o755)
    holder = local.start("lock", REQUEST, timeout_s=5)
    holder.receive(timeout_s=5)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert json.loads((folder / "lock.json").read_text())["command"] == "dspark up"


def test_a_folder_that_can_not_be_made_names_owner_and_user(local: LocalHost, home: Path) -> None:
    (home / ".local").write_text("a file where a folder belongs")
    with pytest.raises(StepFailed, match="can't be written") as failed:
        local.call("lock", REQUEST, timeout_s=5)
    assert "belongs to" in failed.value.why
    assert failed.value.node == "head"
