"""Does the pair generate? /health and /v1/models stay good while a rank is gone, so only a token proves it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.plan.served import Served
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.served import HTTP_OK, Api, NoAnswer
from dspark_deploy.watch.readiness import served_models

TOKEN_S = 15  # one token of an idle pair takes well under a second, the first after a start about ten
MOVES_S = 3  # between two readings of the token counters

Verdict = Literal["generates", "silent", "no-api", "other-api", "refuses"]


@dataclass(frozen=True, slots=True)
class Generation:
    """What the API did when asked for one token, and the reason in one sentence."""

    verdict: Verdict
    detail: str


def ask_for_a_token(api: Api, served: Served, clock: Clock) -> Generation:
    """One token, in bounded time. A busy pair whose counters move is generating, whoever it generates for."""
    models = served_models(api)
    if models is None:
        return Generation("no-api", f"nothing answers on port {served.port} of the head yet")
    if served.served_name not in models:
        return Generation("other-api", f"port {served.port} of the head serves {', '.join(models) or 'nothing'}")
    before = _tokens(api)
    request = {"model": served.served_name, "prompt": "1", "max_tokens": 1, "temperature": 0}
    try:
        answer = api.post("/v1/completions", request, timeout_s=TOKEN_S)
    except NoAnswer as error:
        return _by_counters(api, before, clock, str(error))
    if answer.status == HTTP_OK:
        return Generation("generates", "one token was generated when asked")
    return Generation("refuses", f"asked for one token, it answered HTTP {answer.status}: {answer.text[:200]}")


def _by_counters(api: Api, before: float | None, clock: Clock, why: str) -> Generation:
    clock.sleep(MOVES_S)
    after = _tokens(api)
    if before is not None and after is not None and after > before:
        return Generation("generates", "busy: its token counters move")
    return Generation("silent", f"asked for one token: {why}, and its token counters stand still")


def _tokens(api: Api) -> float | None:
    """Tokens read and written since the server's start; None where /metrics can't be read."""
    try:
        answer = api.get("/metrics", timeout_s=5)
    except NoAnswer:
        return None
    values = re.findall(r"^vllm:(?:generation|prompt)_tokens_total(?:\{[^}]*\})? (\S+)$", answer.text, re.MULTILINE)
    return sum(map(float, values)) if values else None
