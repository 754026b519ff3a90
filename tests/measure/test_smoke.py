"""What counts as an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dspark_deploy.errors import LaunchFailed
from dspark_deploy.measure.smoke import judge, smoke
from dspark_deploy.remote.served import Answer, NoAnswer


class FakeApi:
    """Answers every chat with the same thing."""

    def __init__(self, answer: Answer | NoAnswer) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    def get(self, path: str, *, timeout_s: float) -> Answer:
        raise AssertionError("the smoke asks no GET")

    def post(self, path: str, document: Any, *, timeout_s: float) -> Answer:
        assert path == "/v1/chat/completions"
        self.asked.append(document)
        if isinstance(self.answer, NoAnswer):
            raise self.answer
        return self.answer


def chat(content: str | None, *, tokens: int = 2, reasoning: str | None = None) -> Answer:
    message = {"role": "assistant", "content": content, "reasoning_content": reasoning}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Answer(200, json.dumps({"choices": [choice], "usage": {"completion_tokens": tokens}}))


def test_two_requests_are_asked_one_beyond_411_tokens() -> None:
    api = FakeApi(chat("42"))
    result = smoke(api, "m")
    short, long = (request["messages"][0]["content"] for request in api.asked)
    assert len(short) < 100
    assert len(long) > 411 * 4  # a token is at most about four characters of plain English
    assert [reply.text for reply in result.replies] == ["42", "42"]
    assert result.warnings == ()


def test_thinking_is_off_by_request_and_64_tokens_are_asked() -> None:
    api = FakeApi(chat("42"))
    smoke(api, "m")
    assert all(request["chat_template_kwargs"] == {"thinking": False} for request in api.asked)
    assert {request["max_tokens"] for request in api.asked} == {64}


def test_a_reply_that_is_only_reasoning_passes_with_a_warning() -> None:
    assert len(smoke(FakeApi(chat(None, reasoning="hm")), "m").warnings) == 2


@pytest.mark.parametrize(
    "answer",
    [
        chat(""),
        chat("   ", tokens=3),
        chat("42", tokens=0),
        Answer(200, json.dumps({"error": {"message": "boom"}})),
        Answer(200, "<html>hello</html>"),
        Answer(200, json.dumps({"choices": [], "usage": {"completion_tokens": 1}})),
    ],
)
def test_what_is_no_answer_is_refused_with_the_reply_shown(answer: Answer) -> None:
    with pytest.raises(LaunchFailed) as raised:
        judge("short chat", answer)
    assert "short chat" in raised.value.message
    assert raised.value.node == "head"


@pytest.mark.parametrize(
    "answer", [Answer(500, "Internal Server Error"), NoAnswer("no answer within 180 s", timed_out=True)]
)
def test_an_http_error_and_silence_end_the_smoke(answer: Answer | NoAnswer) -> None:
    with pytest.raises(LaunchFailed):
        smoke(FakeApi(answer), "m")
