"""A server that is measured: the pair, or what the pair is compared with."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from dspark_deploy.measure.client import Client
from dspark_deploy.measure.counters import read_counters

QUIET_S = 30.0  # how long other requests are waited for before a measurement begins among them
TURN_S = 0.25


@dataclass(frozen=True, slots=True)
class Side:
    """One server and how it is asked."""

    name: str  # `the pair`, or the URL
    client: Client
    model: str
    max_model_len: int | None = None  # tokens, prompt and answer together; None: it does not say
    vllm: bool = True  # takes vLLM's own fields beside OpenAI's

    def chat(
        self, prompt: str, *, tokens: int, thinking: bool = False, whole: bool = False, system: str = ""
    ) -> dict[str, Any]:
        """A chat's body at temperature 0. `whole`: exactly so many tokens, whatever the model would like."""
        messages = [{"role": "system", "content": system}] if system else []
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*messages, {"role": "user", "content": prompt}],
            "max_tokens": tokens,
            "temperature": 0,
        }
        if self.vllm:
            body["chat_template_kwargs"] = {"thinking": thinking}
            if whole:
                body |= {"ignore_eos": True, "min_tokens": tokens}
        return body

    def completion(self, prompt: str, *, tokens: int) -> dict[str, Any]:
        """A plain completion's body at temperature 0."""
        return {"model": self.model, "prompt": prompt, "max_tokens": tokens, "temperature": 0}


async def is_quiet(side: Side, limit_s: float = QUIET_S) -> bool:
    """Wait until the server has no request; whether it has none. A server without counters counts as quiet."""
    deadline = time.monotonic() + limit_s
    while True:
        counters = await read_counters(side.client)
        if counters is None or counters.get("num_requests_running") + counters.get("num_requests_waiting") == 0:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(TURN_S)
