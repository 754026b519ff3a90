from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import httpx
import pytest

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.remote.api import served_client
from dspark_deploy.remote.local import LocalHost
from tests.fakes import FakeHost
from tests.remote.http_server import answering
from tests.remote.sshd import Sshd
from tests.samples import node_facts


def echo(method: str, path: str, body: Any) -> tuple[int, Any]:
    return 200, {"method": method, "path": path, "body": body}


def test_requests_go_through_the_node(sshd: Sshd) -> None:
    with (
        answering(echo) as port,
        closing(sshd.open()) as host,
        served_client(host, "127.0.0.1", port) as client,
    ):
        for number in range(3):
            answer = client.post("/v1/chat/completions", json={"n": number}).json()
            assert answer == {"method": "POST", "path": "/v1/chat/completions", "body": {"n": number}}
    assert len(sshd.processes) == 1


def test_an_answer_can_be_streamed(local: LocalHost) -> None:
    def stream(_method: str, _path: str, _body: Any) -> tuple[int, str]:
        return 200, "".join(f"data: {json.dumps({'n': number})}\n\n" for number in range(3))

    with (
        answering(stream) as port,
        served_client(local, "127.0.0.1", port) as client,
        client.stream("GET", "/") as response,
    ):
        assert [line for line in response.iter_lines() if line] == [f'data: {{"n": {n}}}' for n in range(3)]


def test_a_key_goes_along(local: LocalHost) -> None:
    with served_client(local, "127.0.0.1", 8888, key="sk-one") as client:
        assert client.headers["Authorization"] == "Bearer sk-one"
    with served_client(local, "127.0.0.1", 8888) as client:
        assert "Authorization" not in client.headers


def test_an_ipv6_address_is_put_in_brackets(local: LocalHost) -> None:
    with served_client(local, "::1", 8888) as client:
        assert str(client.base_url) == "http://[::1]:8888"


def test_nothing_that_listens_is_a_connect_error() -> None:
    with served_client(FakeHost(node_facts()), "127.0.0.1", 1) as client, pytest.raises(httpx.ConnectError):
        client.get("/health")


def test_a_lost_node_is_told_as_such(sshd: Sshd) -> None:
    host = sshd.open()
    host.close()
    with served_client(host, "127.0.0.1", 1) as client, pytest.raises(NodeUnreachable):
        client.get("/health")


def test_a_server_that_is_silent_is_a_timeout(local: LocalHost) -> None:
    def silent(_method: str, _path: str, _body: Any) -> tuple[int, str]:
        return 0, ""

    with (
        answering(silent) as port,
        served_client(local, "127.0.0.1", port) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.get("/", timeout=0.1)


def test_the_controller_s_proxy_has_no_say(local: LocalHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with answering(echo) as port, served_client(local, "127.0.0.1", port) as client:
        assert client.get("/x").status_code == 200
