"""Put an answer together, from its events or from one whole document, chat or completion."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dspark_deploy.measure.outcome import ToolCall

DONE = "[DONE]"


class Malformed(Exception):
    """Not what an OpenAI API answers."""


@dataclass(slots=True)
class Gathered:
    """An answer as far as it has come."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, tuple[str, str]] = field(default_factory=dict)  # index -> name, arguments so far
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def take_event(self, data: str) -> bool:
        """Take one event. Whether it brought output. Raises Malformed."""
        if data == DONE:
            return False
        document = _parsed(data)
        self._take_usage(document)
        output = False
        for choice in _choices(document, required="usage" not in document):
            part = choice.get("delta", choice)
            output |= self._take_part(part if isinstance(part, dict) else {}, choice)
        return output

    def take_document(self, text: str) -> None:
        """Take a whole answer. Raises Malformed."""
        document = _parsed(text)
        self._take_usage(document)
        for choice in _choices(document, required=True):
            part = choice.get("message", choice)
            self._take_part(part if isinstance(part, dict) else {}, choice)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """In the order of their index."""
        return tuple(ToolCall(*self.calls[index]) for index in sorted(self.calls))

    def _take_part(self, part: Mapping[str, Any], choice: Mapping[str, Any]) -> bool:
        text = part.get("content") or part.get("text") or ""
        thought = part.get("reasoning_content") or part.get("reasoning") or ""
        calls = part.get("tool_calls") or ()
        if text:
            self.text.append(text)
        if thought:
            self.reasoning.append(thought)
        self._take_calls(calls)
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        return bool(text or thought or calls)

    def _take_calls(self, calls: Iterable[Mapping[str, Any]]) -> None:
        for place, call in enumerate(calls):
            index = call.get("index", place)
            function = call.get("function") or {}
            name, arguments = self.calls.get(index, ("", ""))
            self.calls[index] = (name + (function.get("name") or ""), arguments + (function.get("arguments") or ""))

    def _take_usage(self, document: Mapping[str, Any]) -> None:
        match document.get("usage"):
            case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
                self.prompt_tokens, self.completion_tokens = prompt, completion


def _parsed(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise Malformed(f"not JSON: {text[:200]}") from None
    if not isinstance(document, dict):
        raise Malformed(f"not an answer: {text[:200]}")
    if document.get("error"):
        raise Malformed(f"an error inside the answer: {json.dumps(document['error'])[:400]}")
    return document


def _choices(document: Mapping[str, Any], *, required: bool) -> list[dict[str, Any]]:
    choices = document.get("choices")
    if isinstance(choices, list) and all(isinstance(each, dict) for each in choices) and (choices or not required):
        return choices
    if choices is None and not required:
        return []
    raise Malformed(f"no choices in the answer: {json.dumps(document)[:200]}")
