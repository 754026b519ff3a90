"""Questions to the served API: an answer of any status, or why there is none."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from pydantic import SecretStr

from dspark_deploy.errors import KeyRefused, NodeUnreachable
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.served import NoAnswer, ServedApi
from tests.fakes import FakeHost
from tests.remote.http_server import answering
from tests.remote.sshd import Sshd
from tests.samples import node_facts


def echo(method: str, path: str, body: Any) -> tuple[int, Any]:
    return (404, {"error": "no"}) if path == "/absent" else (200, {"method": method, "path": path, "body": body})


def host(answerer: Any) -> FakeHost:
    known = FakeHost(node_facts("head"))
    known.api = answerer
    return known


def test_an_answer_carries_its_status_and_its_document() -> None:
    with ServedApi(host(echo), "127.0.0.1", 8888) as api:
        assert api.get("/v1/models", timeout_s=5).document() == {"method": "GET", "path": "/v1/models", "body": None}
        assert api.post("/x", {"n": "\u00e9"}, timeout_s=5).document()["body"] == {"n": "\u00e9"}
        assert api.get("/absent", timeout_s=5).status == 404


def test_what_is_no_json_has_no_document() -> None:
    with ServedApi(host(lambda *_: (200, "<html>")), "127.0.0.1", 8888) as api:
        assert api.get("/", timeout_s=5).document() is None


@pytest.mark.parametrize(
    ("key", "said"), [(None, "asks for a key, and none is given"), (SecretStr("sk-one"), "does not take the key")]
)
def test_a_server_that_asks_for_another_key_is_told_as_such(key: SecretStr | None, said: str) -> None:
    node = host(lambda *_: (401, {"error": "Unauthorized"}))
    node.api_key = key
    with ServedApi(node, "127.0.0.1", 8888) as api, pytest.raises(KeyRefused) as raised:
        api.get("/v1/models", timeout_s=5)
    assert said in raised.value.message
    assert "sk-one" not in f"{raised.value.message}{raised.value.remedy}"


def test_nothing_that_listens_is_no_answer() -> None:
    with ServedApi(host(None), "::1", 8888) as api, pytest.raises(NoAnswer) as raised:
        api.get("/health", timeout_s=5)
    assert not raised.value.timed_out


def test_silence_is_no_answer_and_timed_out() -> None:
    with ServedApi(host(lambda *_: (0, None)), "127.0.0.1", 8888) as api, pytest.raises(NoAnswer) as raised:
        api.post("/v1/completions", {}, timeout_s=0.1)
    assert raised.value.timed_out


def test_all_questions_go_over_the_nodes_one_connection(sshd: Sshd) -> None:
    with answering(echo) as port, closing(sshd.open()) as node, ServedApi(node, "127.0.0.1", port) as api:
        for number in range(3):
            assert api.post("/x", {"n": number}, timeout_s=5).document()["body"] == {"n": number}
    assert len(sshd.processes) == 1


def test_a_lost_node_is_told_as_such(sshd: Sshd) -> None:
    node = sshd.open()
    node.close()
    with ServedApi(node, "127.0.0.1", 1) as api, pytest.raises(NodeUnreachable):
        api.get("/health", timeout_s=5)


def test_the_controllers_proxy_has_no_say(local: LocalHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with answering(echo) as port, ServedApi(local, "127.0.0.1", port) as api:
        assert api.get("/x", timeout_s=5).status == 200
