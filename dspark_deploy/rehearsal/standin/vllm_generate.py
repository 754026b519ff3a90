"""One request's way through the engine: waiting for a slot, prefill, steps of a few tokens, and what a fault does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import BoundedSemaphore, Event
from typing import Any, NamedTuple

from . import vllm_reply, vllm_speed
from .vllm_boot import Boot
from .vllm_log import API_SERVER, ENGINE_CORE
from .vllm_metrics import Metrics

ISSUE = "EngineCore encountered an issue. See stack trace (above) for the root cause."
PREFILL_CHUNKS = 32  # that a prompt is read in: a real pair takes as many as the batched tokens want
ACCEPTED = (1, 3, 2, 4, 1, 2)  # tokens of successive steps with drafts: some are accepted, some are not


class Refused(Exception):
    """The API answers with this status and error."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": status}}


class Request(NamedTuple):
    """A checked request: what to make of it, and how much of it."""

    model: str
    prompt: str
    prompt_tokens: int
    limit: int
    temperature: float
    effort: str | None
    whole: bool
    tool: vllm_reply.ToolCall | None = None


class Pace(NamedTuple):
    """How fast a request is served, in seconds from its begin."""

    first_token_s: float
    token_s: float

    def due(self, tokens: int) -> float:
        """When so many tokens are there. By the clock, not by sleeps in a row: those would add up what each is late."""
        return self.first_token_s + (tokens - 1) * self.token_s


class Held:
    """What one request has of the KV pool, in tokens."""

    tokens = 0


class Engine:
    """What serves requests on rank 0."""

    def __init__(self, boot: Boot) -> None:
        arguments = boot.arguments
        self.boot = boot
        self.names: list[str] = arguments.served_model_name or [arguments.model]
        self.max_model_len: int = arguments.max_model_len
        self.drafts = int((arguments.speculative_config or {}).get("num_speculative_tokens", 0))
        self.metrics = Metrics(self.names[0], boot.pool_tokens, self.drafts)
        self.dead = Event()
        self._last_prompt = ""
        self._slots = BoundedSemaphore(arguments.max_num_seqs or 256)

    def check(self, body: dict[str, Any]) -> Request:
        """Judge a request as the real API does. Raises Refused."""
        model = body.get("model") or self.names[0]
        if model not in self.names:
            raise Refused(404, f"The model `{model}` does not exist.", "NotFoundError")
        if body.get("thinking_token_budget") is not None:
            raise Refused(400, "Model Runner V2 does not yet support the thinking_token_budget request parameter.")
        try:
            prompt = vllm_reply.prompt_of(body)
            temperature = float(body.get("temperature", self._default("temperature", 1.0)))
        except (KeyError, TypeError, ValueError) as error:
            raise Refused(400, f"Invalid request: {error}") from None
        if temperature < 0:
            raise Refused(400, f"temperature must be non-negative, got {temperature}.")
        tokens = vllm_reply.count_tokens(prompt)
        wish = body.get("max_completion_tokens") or body.get("max_tokens")
        room = self.max_model_len - tokens
        if room < 1 or (wish and wish > room):
            raise Refused(
                400,
                f"This model's maximum context length is {self.max_model_len} tokens. However, you requested "
                f"{wish or 1} output tokens and your prompt contains {tokens} input tokens. Please reduce the length "
                "of the input prompt or the number of requested output tokens.",
            )
        whole = bool(body.get("ignore_eos")) or bool(wish and body.get("min_tokens", 0) >= wish)
        limit = wish or (room if "messages" in body else 16)
        effort, tool = self._effort(body), vllm_reply.tool_call(body)
        return Request(model, prompt, tokens, int(limit), temperature, effort, whole, tool)

    def _default(self, name: str, otherwise: float) -> float:
        override = self.boot.arguments.override_generation_config or {}
        return float(override.get(name, otherwise))

    def _effort(self, body: dict[str, Any]) -> str | None:
        """How hard to think; None is not at all. The request's own words beat the served defaults."""
        if "messages" not in body:
            return None
        given = {
            **(self.boot.arguments.default_chat_template_kwargs or {}),
            **(body.get("chat_template_kwargs") or {}),
        }
        if not (given.get("thinking") or given.get("enable_thinking")):
            return None
        effort = body.get("reasoning_effort") or given.get("reasoning_effort") or "high"
        if effort == "none":
            return None
        return {"max": "max", "xhigh": "max", "high": "high"}.get(effort, "low")

    def generate(self, request: Request) -> Iterator[tuple[str, str]]:
        """Yield (`thought` or `text`, piece of some tokens) and last (`end`, finish reason). Raises Refused."""
        switches = self.boot.switches()
        with self._slot() as held:
            self._step(lambda: self._hangs(self.boot.switches()))
            if switches.get("api") == "error":
                raise Refused(500, ISSUE)
            began = time.monotonic()
            pace = self._pace(request, switches)
            self._prefill(request, held, began, pace.first_token_s)
            with self.metrics.lock:
                self.metrics.prompt_tokens += request.prompt_tokens
                self.metrics.ttft_s.append(time.monotonic() - began)
                other, self._last_prompt = self._last_prompt, request.prompt
            reply = vllm_reply.compose(
                other if switches.get("api") == "mixed" else request.prompt,
                limit=request.limit,
                temperature=request.temperature,
                effort=request.effort,
                whole=request.whole,
                tool=request.tool,
                mode=switches.get("api", "ok"),
            )
            made = 0
            for part, tokens in (("thought", reply.thought), ("tool" if request.tool else "text", reply.text)):
                for group in self._groups(tokens):
                    made += len(group)
                    _sleep_until(began + pace.due(made))
                    self._step(lambda: False)
                    self._count(len(group))
                    yield part, "".join(group)
            self.metrics.finished[reply.finish_reason] += 1
            yield "end", reply.finish_reason

    def _hangs(self, switches: Mapping[str, Any]) -> bool:
        """By switch: always, or once so many requests have been answered."""
        answered = self.metrics.finished.total()
        return switches.get("api") == "no_generate" or answered >= switches.get("wedge_after", answered + 1)

    def _prefill(self, request: Request, held: Held, began: float, limit_s: float) -> None:
        """Read the prompt. Its blocks of the KV pool are taken chunk by chunk; the token counters move at its end."""
        for chunk in range(1, PREFILL_CHUNKS + 1):
            _sleep_until(began + limit_s * chunk / PREFILL_CHUNKS)
            now = request.prompt_tokens * chunk // PREFILL_CHUNKS
            with self.metrics.lock:
                self.metrics.used_tokens += now - held.tokens
                held.tokens = now

    def _pace(self, request: Request, switches: Mapping[str, Any]) -> Pace:
        """As the switches say, else as a real pair, else as fast as it goes."""
        first_token_s = token_s = 0.0
        if scale := switches.get("time_scale"):
            row = vllm_speed.nearest(self.boot.family.name, request.prompt_tokens, self.metrics.running)
            first_token_s, token_s = row.ttft_s / scale, 1 / (row.decode_tps * scale)
        if tps := switches.get("prefill_tps"):
            first_token_s = request.prompt_tokens / float(tps)
        first_token_s = float(switches.get("first_token_s", first_token_s))
        if tps := switches.get("decode_tps"):
            token_s = 1 / float(tps)
        return Pace(first_token_s, token_s)

    def _groups(self, tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """What one step yields: a token, or several where drafts were accepted."""
        at = step = 0
        while at < len(tokens):
            size = min(ACCEPTED[step % len(ACCEPTED)], self.drafts + 1)
            yield tokens[at : at + size]
            at, step = at + size, step + 1

    def _count(self, tokens: int) -> None:
        with self.metrics.lock:
            self.metrics.generation_tokens += tokens
            self.metrics.steps += 1 if self.drafts else 0
            self.metrics.accepted += tokens - 1

    @contextmanager
    def _slot(self) -> Iterator[Held]:
        held = Held()
        with self.metrics.lock:
            self.metrics.waiting += 1
        with self._slots:
            with self.metrics.lock:
                self.metrics.waiting -= 1
                self.metrics.running += 1
            try:
                yield held
            finally:
                with self.metrics.lock:
                    self.metrics.running -= 1
                    self.metrics.used_tokens -= held.tokens

    def _step(self, stuck: Callable[[], bool]) -> None:
        """One step over both ranks: it hangs while the cable is out or `stuck()`, and fails when the worker is gone."""
        switches = self.boot.switches()
        complaint_s = float(switches.get("broadcast_s", 60))
        since = time.monotonic()
        while not self.dead.is_set():
            if self.boot.peer.is_gone():
                self._die()
                break
            if not stuck() and not self.boot.peer.is_silent(float(switches.get("link_s", 2))):
                return
            if time.monotonic() - since > complaint_s:
                since = time.monotonic()
                message = "No available shared memory broadcast block found in 60 seconds. This typically happens when "
                message += "some processes are hanging or doing some time-consuming work (e.g. compilation)."
                self.boot.log.info(ENGINE_CORE, "shm_broadcast.py:542", message)
            time.sleep(0.05)
        raise Refused(500, ISSUE)

    def _die(self) -> None:
        """The engine is lost. Requests get 500, then the server ends; until a request comes nobody notices."""
        message = "EngineCore encountered a fatal error.\nTimeoutError: RPC call to sample_tokens timed out."
        self.boot.log.failure(ENGINE_CORE, "core.py:1062", message)
        message = f"AsyncLLM output_handler failed.\nvllm.v1.engine.exceptions.EngineDeadError: {ISSUE}"
        self.boot.log.failure(API_SERVER, "async_llm.py:664", message)
        self.dead.set()


def _sleep_until(due: float) -> None:
    time.sleep(max(0.0, due - time.monotonic()))


def as_json(value: object) -> bytes:
    """A body."""
    return json.dumps(value, ensure_ascii=False).encode()
