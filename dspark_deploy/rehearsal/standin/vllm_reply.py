"""What the stand-in answers: plain English about two machines, the same for the same prompt at temperature 0."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SENTENCES = (
    "The two machines share one model, and each of them holds half of every layer.",
    "A request arrives at the head, which plans a step and tells the worker what to compute.",
    "Both ranks exchange their partial sums over the cable before the next layer can begin.",
    "A longer prompt takes more time before the first word, because all of it has to be read.",
    "Draft tokens are proposed by a small head and accepted when the full model agrees.",
    "The cache of keys and values is shared by all requests and frees its blocks when one ends.",
    "When the pool is full, new requests wait in line until another one has finished.",
    "Prefixes that were seen before do not have to be computed again.",
    "If one of the machines stops, the other one can't go on alone.",
    "A good check asks for a short answer and looks at the words that come back.",
    "Numbers measured on a quiet pair tell more than numbers from a busy afternoon.",
    "Most of the time is spent moving weights through memory, not on arithmetic.",
)
CHINESE = (
    "两台机器共享一个模型，每台保存每一层的一半。",
    "每算完一层，它们都要通过网线交换部分结果。",
    "如果网络太慢，处理器就只能空等，速度随之下降。",
    "因此需要带宽高、延迟低的连接，例如直接相连的光缆。",
    "请求先到达主节点，再由它通知另一台机器一起计算。",
    "任何一台停下来，另一台都无法单独继续。",
)
THOUGHTS = (
    "The user asks a question, so I should first find out what is wanted.",
    "There may be more than one way to read it, and the plain one is likely meant.",
    "I will keep the answer short and say what matters first.",
    "Let me check that each statement holds before I write it down.",
)
GARBAGE = ("锟斤拷", " the the", " �", "ÐµÑ", " <|place▁holder|>", "}}}", " 的的的", " assistant<", " zx")
THOUGHT_TOKENS = {"low": 12, "high": 40, "max": 120}
SPOILT = {
    "drift": " 首先 两台 机器 共享 一个 模型，每台 保存 一半 的 层。 然后 它们 交换 结果。",
    "loop": " and the cable carries it to the other side" * 12,
    "markup": ' <｜DSML｜function_calls> <｜DSML｜invoke name="lookup"> </think>',
}
REFERENCE = re.compile(r"[Rr]eference code:? (\S+?)[.\s]")
IN_CHINESE = re.compile(r"[\u4e00-\u9fff][^A-Za-z]*\Z")
KNOWN = {
    "days of the week": " Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday.",
    "Count from 1 to 20": f" {' '.join(map(str, range(1, 21)))}.",
}
PASSWORD = re.compile(r"The password is (\S+)\.\n")
SUM = re.compile(r"(\d+) ?\+ ?(\d+)")


class Reply(NamedTuple):
    """A whole answer as tokens, already cut to what was asked for."""

    thought: tuple[str, ...]
    text: tuple[str, ...]
    finish_reason: str

    @property
    def tokens(self) -> int:
        return len(self.thought) + len(self.text)


class ToolCall(NamedTuple):
    """A function to call, the answer of a request that offers one."""

    name: str
    arguments: str  # JSON


def compose(
    prompt: str,
    *,
    limit: int,
    temperature: float,
    effort: str | None,
    whole: bool,
    tool: ToolCall | None = None,
    mode: str = "ok",
) -> Reply:
    """Make the answer to a prompt, at most `limit` tokens long, the thinking included.

    `effort` is None without thinking. `whole` goes on to the limit, as ignore_eos does. `mode` is the api switch.
    """
    chance = random.Random(prompt if temperature == 0 else None)  # noqa: S311  not a secret
    if mode == "empty":
        return Reply((), (), "stop")
    thought = _words(_shuffled(chance, THOUGHTS), THOUGHT_TOKENS.get(effort or "", 40)) if effort else ()
    if tool:
        return Reply(thought, tuple(re.findall(r"\S+\s*", tool.arguments)), "tool_calls")
    if mode == "garbage":
        text = tuple(chance.choice(GARBAGE) for _ in range(min(limit, 200)))
    else:
        sentences = CHINESE if IN_CHINESE.search(prompt) else SENTENCES
        text = _words(
            _shuffled(chance, sentences),
            limit if whole else chance.randint(3, 5) * (15 if sentences is SENTENCES else 1),
            whole=whole,
        )
        text = text if whole else _answered(prompt, text, mode)
    finish = "length" if whole or len(thought) + len(text) > limit else "stop"
    thought = thought[:limit]
    return Reply(thought, text[: limit - len(thought)], finish)


def tool_call(body: Mapping[str, Any]) -> ToolCall | None:
    """The call of the first function that a request offers, its arguments the place that the question names."""
    tools = body.get("tools")
    if not tools or body.get("tool_choice") == "none":
        return None
    function = tools[0]["function"]
    names = re.findall(r"\bin ([A-Z][a-z]+)\b", prompt_of(body)) or ["somewhere"]
    properties = (function.get("parameters") or {}).get("properties") or {}
    return ToolCall(function["name"], json.dumps(dict.fromkeys(properties, names[-1])))


def _answered(prompt: str, text: tuple[str, ...], mode: str) -> tuple[str, ...]:
    """The text with what a prompt asks to stand in it (a reference code, a sum), spoilt where `mode` says so."""
    first = [f"{match[1]}:" for match in REFERENCE.finditer(f"{prompt} ")][:1]
    first += [answer for question, answer in KNOWN.items() if question in prompt]
    first += [match[1] for match in PASSWORD.finditer(prompt)]
    first += [f" {int(match[1]) + int(match[2])}." for match in SUM.finditer(prompt)]
    text = tuple(first) + (tuple(f" {word.lstrip()}" for word in text) if first else text)
    if mode == "truncated":
        return (*text[: len(text) // 2], " unfin")
    if mode == "leak":
        return (*text, *(f" {word}" for word in prompt.split()))
    return text + tuple(f" {word}" for word in SPOILT.get(mode, "").split())


def _shuffled(chance: random.Random, sentences: Sequence[str]) -> list[str]:
    return chance.sample(sentences, len(sentences))


def _words(sentences: Sequence[str], about: int, *, whole: bool = False) -> tuple[str, ...]:
    """Tokens of whole sentences, at least `about` of them as far as there are any; exactly `about` when `whole`."""
    tokens: list[str] = []
    while True:
        for sentence in sentences:
            tokens += [f" {word}" for word in sentence.split()]
            if len(tokens) >= about:
                tokens[0] = tokens[0].lstrip()
                return tuple(tokens[:about] if whole else tokens)


def count_tokens(text: str) -> int:
    """About four characters a token."""
    return max(1, (len(text) + 3) // 4)


def prompt_of(body: Mapping[str, Any]) -> str:
    """The text of a request, chat or plain, as one string. Raises ValueError on what is neither."""
    if "messages" in body:
        messages = body["messages"]
        if not isinstance(messages, list) or not messages:
            raise ValueError("messages must be a list that is not empty")
        return "\n".join(f"{message['role']}: {_content(message)}" for message in messages)
    prompt = body.get("prompt")
    if isinstance(prompt, list) and prompt:
        first = prompt[0]
        return str(first) if isinstance(first, str) else "tokn" * len(prompt)
    if not isinstance(prompt, str):
        raise ValueError("prompt is missing")  # noqa: TRY004  a client's mistake, not a type of ours
    return prompt


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    if any(part.get("type") not in {"text", None} for part in content):
        raise ValueError("this is not a multimodal model")
    return "".join(part.get("text", "") for part in content)
