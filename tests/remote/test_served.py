"""Questions to the served API: an answer of any status, or why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from dspark_deploy.remote.served import NoAnswer, ServedApi
from tests.fakes import FakeHost
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


def test_nothing_that_listens_is_no_answer() -> None:
    with ServedApi(host(None), "::1", 8888) as api, pytest.raises(NoAnswer) as raised:
        api.get("/health", timeout_s=5)
    assert not raised.value.timed_out


def test_silence_is_no_answer_and_timed_out() -> None:
    with ServedApi(host(lambda *_: (0, None)), "127.0.0.1", 8888) as api, pytest.raises(NoAnswer) as raised:
        api.post("/v1/completions", {}, timeout_s=0.1)
    assert raised.value.timed_out
