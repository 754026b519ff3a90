"""What is asked of a server and what came of it, with every time that the figures are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"

Failure = Literal["timeout", "refused", "status", "shape"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `body` is the JSON document without `stream`; `nonce` stands in the prompt and nowhere else."""

    label: str
    body: Mapping[str, Any]
    path: str = CHAT
    nonce: str = ""

    @property
    def prompt(self) -> str:
        """The text that was asked."""
        messages = self.body.get("messages")
        if not messages:
            return str(self.body.get("prompt", ""))
        return "\n".join(each["content"] for each in messages if isinstance(each.get("content"), str))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the model wants called; `arguments` is JSON as it came."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request's end. Times are seconds of one monotonic clock; `event_s` are those of events that brought output.

    Tokens are the server's own count (`usage`), None where it gave none: events are no tokens.
    """

    request: Request
    sent_s: float
    ended_s: float
    event_s: tuple[float, ...] = ()
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    failure: Failure | None = None
    why: str = ""  # where it failed
    status: int | None = None  # the HTTP status where that is the failure
    tls: bool = False  # where TLS is the failure

    @property
    def ok(self) -> bool:
        """Whether an answer came to its end."""
        return self.failure is None

    @property
    def ttft_s(self) -> float | None:
        """From sending to the first output."""
        return self.event_s[0] - self.sent_s if self.event_s else None

    @property
    def decode_s(self) -> float:
        """From the first output to the last."""
        return self.event_s[-1] - self.event_s[0] if self.event_s else 0.0

    @property
    def decode_tps(self) -> float | None:
        """Tokens a second after the first one: (completion tokens - 1) / (last - first)."""
        if self.completion_tokens is None or self.completion_tokens < 2 or self.decode_s <= 0:  # noqa: PLR2004
            return None
        return (self.completion_tokens - 1) / self.decode_s

    @property
    def prefill_tps(self) -> float | None:
        """Prompt tokens over the time to the first output, so the time in the queue counts."""
        if self.prompt_tokens is None or not self.ttft_s:
            return None
        return self.prompt_tokens / self.ttft_s
