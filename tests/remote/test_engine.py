from __future__ import annotations

import json
import struct
import threading
from contextlib import closing

import pytest

from dspark_deploy.errors import NodeUnreachable, StepFailed
from dspark_deploy.remote import dialed, engine
from dspark_deploy.remote.host import EngineEvent, LogLine
from dspark_deploy.remote.local import LocalHost
from tests.remote.sshd import Sshd
from tests.remote.stub_docker import StubDocker
from tests.samples import container

CONTAINER = {"Id": "c1", "Name": "/n", "Image": "sha256:1", "State": {"Status": "running"}, "Config": {}}


def test_the_pair_s_containers_are_found_by_label(local: LocalHost, docker: StubDocker) -> None:
    label = "%7B%22label%22%3A+%5B%22dspark.pair%3Dspark-pair%22%5D%7D"
    found = [{"Id": "c1"}, {"Id": "gone-meanwhile"}]
    docker.answer(f"GET /containers/json?limit=-1&all=1&size=0&trunc_cmd=0&filters={label}", found)
    docker.answer("GET /containers/c1/json", CONTAINER)
    assert [each.id for each in local.engine().containers("spark-pair")] == ["c1"]


def test_questions_share_one_connection(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("GET /containers/c1/json", CONTAINER)
    asked = local.engine()
    for _ in range(5):
        assert asked.inspect("c1") is not None
    assert asked.inspect("c2") is None
    assert asked.image_id("no:1") is None
    assert [call[0] for call in docker.calls()] == [["system", "dial-stdio"]]


@pytest.mark.parametrize("told", ["2026-09-01T10:00:00.25Z", "2026-09-01T12:00:00.250000001+02:00"])
def test_the_node_s_clock_is_told_by_its_engine(local: LocalHost, docker: StubDocker, told: str) -> None:
    docker.answer("GET /info", {"SystemTime": told})
    assert local.engine().time_s() == pytest.approx(1788256800.25, abs=1e-6)


def test_a_connection_that_the_engine_closed_meanwhile_is_replaced(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("GET /containers/c1/json", CONTAINER)
    assert local.engine().inspect("c1") is not None
    for pipe in local._pipes:
        pipe._child.kill()
        pipe._child.wait()
    assert local.engine().inspect("c1") is not None


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("dial unix /var/run/docker.sock: connect: permission denied", "this user may not use docker"),
        ("Cannot connect to the Docker daemon at unix:///x.", "the docker daemon does not run"),
        ("docker: not found", "docker is not installed"),
        ("what is this", "the docker daemon can't be asked"),
    ],
)
def test_an_engine_out_of_reach_is_told_by_what_docker_said(
    local: LocalHost, docker: StubDocker, said: str, what: str
) -> None:
    docker.set(error=said)
    with pytest.raises(StepFailed, match=what) as failed:
        local.engine().inspect("c1")
    assert failed.value.why == said
    assert failed.value.message.startswith("head (this machine): ")


def test_an_engine_that_does_not_answer_has_a_limit(
    local: LocalHost, docker: StubDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker.answer("GET /containers/c1/json", None, status=0)
    monkeypatch.setattr(engine, "ANSWER_S", 1)
    with pytest.raises(StepFailed, match="could not inspect a container") as failed:
        local.engine().inspect("c1")
    assert "no answer within 1 s" in failed.value.why


def test_an_engine_s_own_error_is_quoted(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("GET /containers/c1/json", {"message": "driver failed"}, status=500)
    with pytest.raises(StepFailed, match="could not inspect a container") as failed:
        local.engine().inspect("c1")
    assert "driver failed" in failed.value.why


def test_a_stop_waits_for_the_container_s_own_grace_and_removes_it(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("POST /containers/c1/stop?t=7", "", status=204)
    docker.answer("DELETE /containers/c1?v=True&link=False&force=True", "", status=204)
    local.engine().stop(container(id="c1", stop_timeout_s=7))


def test_a_container_that_is_gone_already_is_stopped(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("GET /unused", None)
    local.engine().stop(container(id="c1"))


def test_a_container_that_stays_is_an_error(
    local: LocalHost, docker: StubDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "GONE_S", 0.0)
    docker.answer("POST /containers/c1/stop?t=10", "", status=204)
    docker.answer("DELETE /containers/c1?v=True&link=False&force=True", {"message": "removal in progress"}, status=409)
    docker.answer("GET /containers/c1/json", CONTAINER)
    with pytest.raises(StepFailed, match="could not remove spark-pair-vllm-1") as failed:
        local.engine().stop(container(id="c1"))
    assert "still there" in failed.value.why


def log_frame(text: str) -> str:
    header = struct.pack(">BxxxL", 1, len(text)).decode("ascii")
    return header + text


def test_a_log_is_read_with_its_stamps(local: LocalHost, docker: StubDocker) -> None:
    path = "GET /containers/c1/logs?stdout=1&stderr=1&timestamps=1&follow=0&tail=2"
    docker.answer(path, log_frame("T1 a\n") + log_frame("T2 b"))
    for chunked in (False, True):
        docker.set(chunked=chunked)
        assert list(local.engine().logs("c1", tail=2)) == [LogLine("T1", "a"), LogLine("T2", "b")]


def test_since_is_counted_by_the_node_s_clock(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("GET /_ping", "OK")  # dated 2026-09-01T10:00:00Z, 1788256800
    path = "GET /containers/c1/logs?stdout=1&stderr=1&timestamps=1&follow=0&tail=all&since=1788256500.000"
    docker.answer(path, log_frame("T1 a\n"))
    assert list(local.engine().logs("c1", since_s=300)) == [LogLine("T1", "a")]


def test_the_log_of_no_container_is_an_error(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("GET /unused", None)
    with pytest.raises(StepFailed, match="could not read a log"):
        local.engine().logs("c1")


def test_a_log_that_is_followed_can_be_ended_from_another_thread(
    local: LocalHost, docker: StubDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialed, "ANSWER_S", 1)
    path = "GET /containers/c1/logs?stdout=1&stderr=1&timestamps=1&follow=1&tail=all"
    docker.set(chunked=True, endless=True)
    docker.answer(path, log_frame("T1 a\n"))
    followed = local.engine().logs("c1", follow=True)
    assert next(followed) == LogLine("T1", "a")
    threading.Timer(0.05, followed.close).start()
    assert list(followed) == []


WANTED = "%7B%22type%22%3A+%5B%22container%22%5D%2C+%22label%22%3A+%5B%22dspark.pair%3Dspark-pair%22%5D%7D"
EVENTS = f"GET /events?filters={WANTED}"


def event(action: str, **attributes: str) -> str:
    actor = {"ID": "c1", "Attributes": {"name": "n", **attributes}}
    return json.dumps({"Type": "container", "Action": action, "Actor": actor, "timeNano": 1_500_000_000}) + "\n"


def test_events_of_the_pair_s_containers_are_told_as_they_come(local: LocalHost, docker: StubDocker) -> None:
    docker.set(chunked=True)  # in two halves that end anywhere
    docker.answer(EVENTS, event("start") + event("die", exitCode="137"))
    assert list(local.engine().events("spark-pair")) == [
        EngineEvent(1.5, "start", "c1", "n"),
        EngineEvent(1.5, "die", "c1", "n", 137),
    ]


def test_an_engine_that_refuses_to_tell_events_is_an_error(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("GET /unused", None)
    with pytest.raises(StepFailed, match="could not tell what happens"):
        local.engine().events("spark-pair")


def test_events_can_be_ended_from_another_thread(local: LocalHost, docker: StubDocker) -> None:
    docker.set(chunked=True, endless=True)
    docker.answer(EVENTS, event("start"))
    told = local.engine().events("spark-pair")
    assert next(told).action == "start"
    threading.Timer(0.05, told.close).start()
    assert list(told) == []


def test_over_ssh_the_engine_borrows_the_one_connection(sshd: Sshd, docker: StubDocker) -> None:
    sshd.environment |= {"PATH": f"{docker.folder}:/usr/bin:/bin", "DOCKER_HOST": "tcp://elsewhere:1"}
    docker.answer("GET /containers/c1/json", CONTAINER)
    docker.set(environment=True)
    with closing(sshd.open()) as host:
        for _ in range(3):
            assert host.engine().inspect("c1") is not None
        assert host.run(["true"], timeout_s=10).returncode == 0
    assert len(sshd.processes) == 1
    assert not any("DOCKER_HOST" in environment for _, environment in docker.calls())


def test_a_lost_connection_is_told_as_such(sshd: Sshd, docker: StubDocker) -> None:
    sshd.environment["PATH"] = f"{docker.folder}:/usr/bin:/bin"
    host = sshd.open()
    docker.answer("GET /containers/c1/json", CONTAINER)
    assert host.engine().inspect("c1") is not None
    sshd.stop()
    with pytest.raises(NodeUnreachable, match="the SSH connection is gone"):
        host.engine().inspect("c1")
    host.close()
