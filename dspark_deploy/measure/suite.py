"""The smoke: one small request of every kind that clients send, its content looked at, in seconds."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from dspark_deploy.checks.finding import Finding, Status
from dspark_deploy.measure.detect.every import detect
from dspark_deploy.measure.detect.sample import Sample
from dspark_deploy.measure.outcome import COMPLETION, Outcome, Request
from dspark_deploy.measure.side import Side
from dspark_deploy.measure.smoke import LONG_PROMPT_TOKENS
from dspark_deploy.remote.served import HTTP_OK, NoAnswer

TOKENS, THINKING_TOKENS = 128, 2048  # with thinking on, a small budget ends before the answer begins
SUM = "What is 17 + 25? Answer with one short sentence."
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city now.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PIXEL = (  # a PNG of one pixel
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def run_smoke(side: Side, max_model_len: int | None) -> AsyncIterator[tuple[Finding, float]]:
    """Each check's finding and its seconds, one after the other. `max_model_len` is what was planned."""
    checks: list[Callable[[], Awaitable[Finding]]] = [
        lambda: _models(side, max_model_len),
        lambda: _chat(side, "chat", SUM, "42", stream=False),
        lambda: _chat(side, "chat-stream", SUM, "42", stream=True),
        lambda: _chat(side, "chat-long", _long(), "21", stream=False),
        lambda: _chat(side, "chat-long-stream", _long(), "21", stream=True),
        lambda: _completion(side, stream=False),
        lambda: _completion(side, stream=True),
        lambda: _tool(side),
        lambda: _reasoning(side),
        lambda: _image(side),
    ]
    for check in checks:
        began = time.monotonic()
        yield await check(), time.monotonic() - began


async def _models(side: Side, max_model_len: int | None) -> Finding:
    try:
        answer = await side.client.get("/v1/models")
    except NoAnswer as error:
        return _finding("models", "fail", f"/v1/models: {error}")
    match answer.document():
        case {"data": [*entries]} if answer.status == HTTP_OK:
            found = {str(each.get("id")): each.get("max_model_len") for each in entries if isinstance(each, dict)}
        case _:
            return _finding("models", "fail", f"/v1/models answers HTTP {answer.status}: {answer.text[:200]}")
    if side.model not in found:
        return _finding("models", "fail", f"/v1/models names {', '.join(found) or 'nothing'}, not {side.model}")
    if max_model_len is not None and found[side.model] != max_model_len:
        message = f"{side.model} has max_model_len {found[side.model]}, planned was {max_model_len}"
        return _finding("models", "fail", message)
    return _finding("models", "ok", f"/v1/models names {side.model}, {found[side.model]} tokens")


async def _chat(side: Side, name: str, prompt: str, wanted: str, *, stream: bool) -> Finding:
    request = Request(name, side.chat(prompt, tokens=TOKENS))
    outcome = await (side.client.stream(request) if stream else side.client.whole(request))
    return _judged(name, outcome, wanted)


def _long() -> str:
    facts = "\n".join(f"Item {number} weighs {number * 3} grams." for number in range(1, LONG_PROMPT_TOKENS // 5))
    return f"{facts}\nHow much does item 7 weigh, in grams? It is 14 + 7 of them. Answer with one short sentence."


async def _completion(side: Side, *, stream: bool) -> Finding:
    name = "completion-stream" if stream else "completion"
    prompt = "The sum of two numbers is written with a plus sign, for example 20 + 22 ="
    request = Request(name, side.completion(prompt, tokens=24), COMPLETION)
    outcome = await (side.client.stream(request) if stream else side.client.whole(request))
    if (bad := _lost(name, outcome)) is not None:
        return bad
    alarms = [alarm for alarm in detect(Sample(outcome.text)) if alarm.kind in {"garbled", "loop", "empty"}]
    if alarms:
        return _finding(name, "fail", f"{name}: {alarms[0].kind} text: {alarms[0].evidence}")
    return _finding(name, "ok", f"{name}: {_short(outcome.text)}")


async def _tool(side: Side) -> Finding:
    body: dict[str, Any] = side.chat("What is the weather in Oslo? Use the tool.", tokens=256)
    outcome = await side.client.whole(Request("tool", {**body, "tools": [TOOL], "tool_choice": "auto"}))
    if (bad := _lost("tool", outcome)) is not None:
        return bad
    if not outcome.tool_calls:
        remedy = "the family's tool parser and --enable-auto-tool-choice stand on the command line; see the head's log"
        return _finding("tool", "fail", f"tool: no call came back, but {_short(outcome.text)}", remedy)
    call = outcome.tool_calls[0]
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return _finding("tool", "fail", f"tool: the arguments are no JSON: {_short(call.arguments)}")
    if call.name != "get_weather" or not isinstance(arguments, dict) or arguments.get("city") != "Oslo":
        return _finding("tool", "fail", f"tool: called {call.name}({call.arguments}), wanted get_weather for Oslo")
    return _finding("tool", "ok", "tool: get_weather was called for Oslo")


async def _reasoning(side: Side) -> Finding:
    body = side.chat(SUM, tokens=THINKING_TOKENS, thinking=True)
    outcome = await side.client.whole(Request("reasoning", body))
    finding = _judged("reasoning", outcome, "42")
    if finding.status == "ok" and not outcome.reasoning.strip():
        message = "reasoning: asked to think, it answered without reasoning that is told apart"
        return _finding("reasoning", "warn", message, "the family's reasoning parser; a model without thinking is fine")
    return finding


async def _image(side: Side) -> Finding:
    content = [
        {"type": "text", "text": "What is in the picture?"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
    ]
    body = {**side.chat("", tokens=16), "messages": [{"role": "user", "content": content}]}
    outcome = await side.client.whole(Request("image", body))
    if outcome.status is not None and 400 <= outcome.status < 500:  # noqa: PLR2004  client errors
        return _finding("image", "ok", f"image: refused with HTTP {outcome.status}, as a text-only model does")
    if outcome.ok:
        return _finding("image", "fail", f"image: a text-only model answered about a picture: {_short(outcome.text)}")
    return _finding("image", "fail", f"image: {outcome.failure}: {outcome.why}")


def _judged(name: str, outcome: Outcome, wanted: str) -> Finding:
    if (bad := _lost(name, outcome)) is not None:
        return bad
    sample = Sample(outcome.text, outcome.request.prompt, outcome.finish_reason)
    alarms = [alarm for alarm in detect(sample) if alarm.kind != "prompt"]  # a short question may stand in its answer
    if alarms:
        return _finding(name, "fail", f"{name}: {alarms[0].kind}: {alarms[0].evidence}")
    if wanted not in outcome.text:
        return _finding(name, "fail", f"{name}: {wanted} is not in the answer: {_short(outcome.text)}")
    if not outcome.completion_tokens:
        return _finding(name, "fail", f"{name}: the usage counts {outcome.completion_tokens} tokens of an answer")
    return _finding(name, "ok", f"{name}: {_short(outcome.text)}")


def _lost(name: str, outcome: Outcome) -> Finding | None:
    if outcome.ok:
        return None
    return _finding(name, "fail", f"{name}: {outcome.failure}: {outcome.why}")


def _finding(name: str, status: Status, message: str, remedy: str = "") -> Finding:
    if status == "fail" and not remedy:
        remedy = "`dspark logs head` shows what the server says; compare image and snapshot of the nodes"
    return Finding(f"smoke-{name}", status, message, "head", remedy if status != "ok" else "")


def _short(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= 60 else f"{words[:57]}...")  # noqa: PLR2004  a line on a terminal
