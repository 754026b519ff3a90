"""`doctor` over fake nodes: what it asks, what it says of one that does not answer, and its recordings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import ConfigError, ExitCode, NodeUnreachable, StepFailed
from dspark_deploy.flow.doctor import DoctorReport, examine_open, examine_recorded
from dspark_deploy.flow.intention import load_meant
from dspark_deploy.flow.wish import Wish
from tests.flow.stand import FakeClock, Stand
from tests.samples import docker, memory


@pytest.fixture(name="stand")
def _stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def wish(stand: Stand, **changes: Any) -> Wish:
    return Wish(inventory=Path("inventory.yaml"), directory=stand.folder, home=stand.folder, **changes)


def doctor(stand: Stand, *, directory: Path | None = None, gone: str | None = None, **changes: Any) -> DoctorReport:
    meant = wish(stand, **changes)
    inventory, intention = load_meant(meant)
    hosts = {node: host for node, host in stand.hosts.items() if node != gone}
    lost = (
        {gone: NodeUnreachable(f"{gone} (ubuntu@10.77.0.2): refused", remedy="try `ssh spark-worker`", node=gone)}
        if gone
        else {}
    )
    return examine_open(meant, inventory, intention, hosts, lost, FakeClock(), directory=directory)


def bad(report: DoctorReport) -> list[tuple[str, str, str | None]]:
    return [(each.id, each.status, each.node) for each in report.findings if each.status != "ok"]


def test_a_healthy_pair_is_asked_once_and_nothing_is_changed(stand: Stand) -> None:
    report = doctor(stand)
    assert bad(report) == []
    assert (report.healthy, report.profile, report.family) == (True, "agent-1m", "anemll")
    assert sorted(program for program, _ in stand.head.done) == ["link", "probe", "verify_cache"]
    assert stand.running() == {"head": [], "worker": []}


def test_an_image_of_another_family_is_looked_into_again_to_name_it(stand: Stand) -> None:
    stand.worker.layout = "stage-c"
    report = doctor(stand)
    (told,) = [each for each in report.findings if each.status == "fail"]
    assert (told.id, told.node) == ("image-layout", "worker")
    assert told.message.endswith("it is laid out as stage-c")
    assert ["look" in {program for program, _ in host.done} for host in (stand.head, stand.worker)] == [False, True]


def test_the_cache_is_judged_with_the_rest(stand: Stand) -> None:
    stand.worker.snapshot = {"folder": None, "files": []}
    report = doctor(stand)
    assert ("cache", "fail", "worker") in bad(report)
    assert {each.group for each in report.findings if each.id == "cache"} == {"cache"}


def test_without_a_profile_no_image_and_no_cache_is_asked_for(stand: Stand) -> None:
    (stand.folder / "inventory.yaml").write_text("name: spark-pair\nhead: {host: a}\nworker: {host: b}\n")
    report = doctor(stand)
    assert (report.profile, bad(report)) == (None, [])
    assert {program for program, _ in stand.head.done} == {"probe", "link"}


def test_a_node_that_is_gone_leaves_the_other_examined(stand: Stand) -> None:
    report = doctor(stand, gone="worker")
    assert bad(report) == [("ssh-login", "fail", "worker")]
    assert [error.node for error in report.unreachable] == ["worker"]
    assert any(each.node == "head" and each.id == "memory-available" for each in report.findings)


def test_a_node_whose_probe_fails_leaves_the_other_examined(stand: Stand) -> None:
    stand.worker.failing["probe"] = StepFailed("worker: python3 is not there", remedy="install it", node="worker")
    report = doctor(stand)
    assert ("ssh-login", "fail", "worker") in bad(report)
    assert report.unreachable == ()
    assert any(each.node == "head" and each.id == "memory-available" for each in report.findings)


def test_what_could_not_be_read_is_said(stand: Stand) -> None:
    stand.worker.facts = replace(stand.worker.facts, memory=None, missing={"memory": "permission denied"})
    report = doctor(stand)
    assert report.unread == {"worker": {"memory": "permission denied"}}
    assert bad(report) == [("memory-available", "skip", "worker")]


def test_an_image_that_can_not_be_looked_into_stops_nothing(stand: Stand) -> None:
    stand.worker.failing["look"] = StepFailed("worker: no container", why="disk full", remedy="free it", node="worker")
    report = doctor(stand)
    assert bad(report) == [("image-layout", "skip", "worker")]
    assert "no container" in report.unread["worker"]["look"]


def test_a_doubtful_profile_is_warned_of(stand: Stand) -> None:
    report = doctor(stand, overrides=("gpu_memory_utilization=0.9",))
    assert any("highest ever published" in warning for warning in report.warnings)


def test_a_recording_is_judged_as_the_pair_was(stand: Stand, tmp_path: Path) -> None:
    stand.worker.facts = replace(
        stand.worker.facts, memory=memory(available=2**30), docker=docker(context="rootless"), skew_s=3600.0
    )
    stand.head.hears = {"full": False}
    live = doctor(stand, directory=tmp_path / "kept", overrides=("gpu_memory_utilization=0.8",))
    again = examine_recorded(Wish(directory=tmp_path, home=tmp_path), Path("kept"), FakeClock())
    assert bad(again) == bad(live) != []
    assert [each.id for each in again.findings] == [each.id for each in live.findings]
    messages = [each.message for each in again.findings]
    assert any("gpu_memory_utilization 0.8 " in message for message in messages)


def test_a_recording_keeps_a_node_that_was_gone_and_one_that_could_not_look(stand: Stand, tmp_path: Path) -> None:
    stand.head.failing["look"] = StepFailed("head: no container", why="disk full", remedy="free it", node="head")
    live = doctor(stand, directory=tmp_path / "kept", gone="worker")
    again = examine_recorded(Wish(directory=tmp_path, home=tmp_path), Path("kept"), FakeClock())
    assert bad(again) == bad(live) == [("ssh-login", "fail", "worker"), ("image-layout", "skip", "head")]
    (error,) = again.unreachable
    assert (error.message, error.remedy) == ("worker (worker-machine): refused", "try `ssh worker-machine`")


def test_a_recording_keeps_a_probe_that_failed(stand: Stand, tmp_path: Path) -> None:
    stand.worker.failing["probe"] = StepFailed("worker: python3 is not there", remedy="install it", node="worker")
    live = doctor(stand, directory=tmp_path / "kept")
    again = examine_recorded(Wish(directory=tmp_path, home=tmp_path), Path("kept"), FakeClock())
    assert bad(again) == bad(live)
    assert again.unreachable == live.unreachable == ()


def test_a_recording_names_nobody(stand: Stand, tmp_path: Path) -> None:
    report = doctor(stand, directory=tmp_path / "kept")
    assert {Path(name).relative_to(tmp_path / "kept").as_posix() for name in report.recorded} == {
        "inventory.yaml",
        "head.json",
        "worker.json",
        "profiles/agent-1m.yaml",
        "profiles/models/deepseek-v4-flash-0731.yaml",
        "profiles/families/anemll.yaml",
    }
    everything = "".join(Path(name).read_text() for name in report.recorded)
    for secret in ("/home/nvidia", "/home/ubuntu", "spark-head", "spark-worker", "boot-head", '"nvidia"', '"ubuntu"'):
        assert secret not in everything


@pytest.mark.parametrize("where", [("schema",), ("answers", "probe", "schema")])
def test_a_recording_of_another_schema_is_refused(stand: Stand, tmp_path: Path, where: tuple[str, ...]) -> None:
    doctor(stand, directory=tmp_path / "kept")
    path = tmp_path / "kept/head.json"
    document = json.loads(path.read_text())
    place = document
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = 99
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="schema 99, and this dspark reads") as raised:
        examine_recorded(Wish(directory=tmp_path, home=tmp_path), Path("kept"), FakeClock())
    assert raised.value.code is ExitCode.USAGE


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"schema": 1, "answers": {"probe": 3}}'])
def test_what_is_no_recording_is_refused(stand: Stand, tmp_path: Path, content: str | None) -> None:
    doctor(stand, directory=tmp_path / "kept")
    path = tmp_path / "kept/head.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ConfigError, match=r"head\.json"):
        examine_recorded(Wish(directory=tmp_path, home=tmp_path), Path("kept"), FakeClock())
