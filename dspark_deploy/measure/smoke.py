"""The two quickest requests that prove a pair: a short chat, and one that leaves the first KV blocks behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dspark_deploy.errors import LaunchFailed
from dspark_deploy.remote.served import HTTP_OK, Answer, Api, NoAnswer

ANSWER_S = 180  # the first request after a start compiles kernels: 6 to 10 s more are normal, minutes are known
MAX_TOKENS = 64
LONG_PROMPT_TOKENS = 411  # prompts up to here never touch the sparse path


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request came back with."""

    request: str
    text: str
    reasoning: str
    finish_reason: str
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Smoke:
    """Both replies, and what is odd about them without being wrong."""

    replies: tuple[Reply, ...]
    warnings: tuple[str, ...]


def smoke(api: Api, served_name: str) -> Smoke:
    """Ask twice, judge the text. Raises LaunchFailed with the reply shown where it is not an answer."""
    replies = [_ask(api, served_name, name, prompt) for name, prompt in _prompts()]
    return Smoke(tuple(replies), tuple(_warnings(replies)))


def body(served_name: str, prompt: str, max_tokens: int = MAX_TOKENS) -> dict[str, Any]:
    """One chat request. Thinking is off by request: a thinking model spends so few tokens before it answers."""
    return {
        "model": served_name,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "chat_template_kwargs": {"thinking": False},
    }


def _prompts() -> Iterator[tuple[str, str]]:
    yield "short chat", "What is 17 + 25? Answer with the number."
    facts = "\n".join(f"Item {number} weighs {number * 3} grams." for number in range(1, LONG_PROMPT_TOKENS // 5))
    yield "chat beyond one block", f"{facts}\nHow much does item 7 weigh? Answer with one short sentence."


def _ask(api: Api, served_name: str, name: str, prompt: str) -> Reply:
    try:
        answer = api.post("/v1/chat/completions", body(served_name, prompt), timeout_s=ANSWER_S)
    except NoAnswer as error:
        raise _bad(name, str(error)) from error
    if answer.status != HTTP_OK:
        raise _bad(name, f"HTTP {answer.status}: {answer.text[:400]}")
    return judge(name, answer)


def judge(name: str, answer: Answer) -> Reply:
    """Read a reply out of an answer of status 200. Raises LaunchFailed where there is none."""
    match answer.document():
        case {
            "choices": [{"message": {**message}, **choice}, *_],
            "usage": {"completion_tokens": int(tokens)},
        }:
            reply = Reply(
                request=name,
                text=_text(message, "content"),
                reasoning=_text(message, "reasoning_content") or _text(message, "reasoning"),
                finish_reason=_text(choice, "finish_reason"),
                completion_tokens=tokens,
            )
        case _:
            raise _bad(name, f"not a chat answer: {answer.text[:400]}")
    if tokens < 1 or not (reply.text.strip() or reply.reasoning.strip()):
        raise _bad(name, f"an answer without text ({tokens} tokens, finish reason {reply.finish_reason!r})")
    return reply


def _text(document: Mapping[Any, Any], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _warnings(replies: list[Reply]) -> Iterator[str]:
    for reply in replies:
        if not reply.text.strip():
            yield f"{reply.request}: the reply is only reasoning, although thinking was off by request"


def _bad(name: str, what: str) -> LaunchFailed:
    return LaunchFailed(
        f"head: the API answers and the {name} fails: {what}",
        why="/v1/models answers without the worker; text needs both ranks, the right image, encoder and snapshot",
        remedy="`dspark logs` shows both ranks; compare image and snapshot of the nodes",
        node="head",
    )
