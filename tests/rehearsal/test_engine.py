"""The rehearsal's engine as the tool's own client meets it."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from dspark_deploy.inventory.host import parse_host
from dspark_deploy.remote.connect import open_host
from dspark_deploy.remote.host import Host

from ..bed.docker_api import DockerRefused
from ..contract import IMAGE
from .pair import RehearsedPair

PAIR = "rehearsal"


@pytest.fixture(name="host")
def _host(serving: RehearsedPair) -> Iterator[Host]:
    host = open_host("head", parse_host("rehearsal-head"), ssh_config=serving.folder / "ssh_config")
    yield host
    host.close()


def test_logs_begin_where_they_are_asked_to(host: Host) -> None:
    engine = host.engine()
    (container,) = engine.containers(PAIR)
    every = [line.text for line in engine.logs(container.id)]
    assert every[0].startswith("dspark prepare:")
    assert [line.text for line in engine.logs(container.id, tail=2)] == every[-2:]
    assert list(engine.logs(container.id, tail=0)) == []
    assert [line.text for line in engine.logs(container.id, since_s=3600)] == every
    assert list(engine.logs(container.id, since_s=-3600)) == []


def test_an_image_is_known_by_its_tags_digest_and_id(host: Host) -> None:
    engine = host.engine()
    found = engine.image_id(IMAGE)
    assert found is not None
    assert engine.image_id(found) == found
    assert engine.image_id("no/such:image") is None


def test_a_follower_sees_the_end_of_the_container(host: Host) -> None:
    engine = host.engine()
    (container,) = engine.containers(PAIR)
    with closing(engine.logs(container.id, follow=True, tail=1)) as lines:
        next(lines)
        engine.stop(container)
        assert all(line.text for line in lines)
    assert engine.inspect(container.id) is None


def test_a_command_runs_in_a_container_that_runs_and_in_no_other(serving: RehearsedPair) -> None:
    engine = serving.api("head")
    (container,) = engine.containers()
    assert "prepare.py" in engine.execute(container.id, "/bin/sh", "-c", "ls /opt/dspark; echo /opt/dspark >&2")
    assert "/no/such" in engine.execute(container.id, "/no/such")
    engine.kill(container.id)
    with pytest.raises(DockerRefused, match="is not running"):
        engine.execute(container.id, "/bin/true")
    with pytest.raises(DockerRefused, match="No such"):
        engine.execute("another", "/bin/true")


def test_events_tell_what_happens_to_a_container(rehearsed: RehearsedPair) -> None:
    with closing(_Events(rehearsed)) as events:
        rehearsed.dspark("up").check()
        seen = [events.next() for _ in range(2)]
        rehearsed.dspark("down").check()
        seen += [events.next() for _ in range(3)]
    assert [each["Action"] for each in seen] == ["create", "start", "die", "stop", "destroy"]
    assert {each["Actor"]["Attributes"]["dspark.pair"] for each in seen} == {PAIR}


def test_what_the_tool_does_not_ask_for_is_refused(rehearsed: RehearsedPair) -> None:
    with pytest.raises(DockerRefused, match="does not speak"):
        rehearsed.api("head").call("POST", "/containers/prune")


@pytest.mark.parametrize("words", ["ps", "run x", "compose down", "compose -p x -f none.yaml up", "system prune"])
def test_the_command_refuses_what_it_does_not_know(rehearsed: RehearsedPair, words: str) -> None:
    ran = rehearsed.login("head", f"docker {words}")
    assert ran.returncode == 1
    assert ran.stderr


class _Events:
    """The head's stream of events."""

    def __init__(self, pair: RehearsedPair) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(10)
        self._socket.connect(str(pair.folder / "head" / "engine.sock"))
        self._socket.sendall(b"GET /events HTTP/1.1\r\nHost: docker\r\n\r\n")
        self._answer = http.client.HTTPResponse(self._socket)
        self._answer.begin()

    def next(self) -> dict[str, Any]:
        """The next one of a rank; the tool also looks into images, by containers that it makes and removes."""
        while True:
            found: dict[str, Any] = json.loads(self._answer.readline())
            if "dspark.pair" in found["Actor"]["Attributes"]:
                return found

    def close(self) -> None:
        self._socket.close()
