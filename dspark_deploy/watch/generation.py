"""Does the pair generate? /health and /v1/models stay good while a rank is gone, so only tokens prove it.

`status`, `watch` and `supervise` share this one reading. Signs of life are, and are only: tokens generated, prompt
tokens read, a growing share of the KV pool (a long prefill takes its blocks chunk by chunk, minutes before either token
counter moves), and log lines about work. No sign of life are: /health, the number of requests that run or end (a hung
engine keeps them, and clients give up), the load of GPU and processes (a rank that hangs in a collective spins at full
load), and lines that are printed whatever the engine does.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.errors import KeyRefused
from dspark_deploy.facts.metrics import Counters, parse_counters
from dspark_deploy.plan.served import Served
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.served import HTTP_OK, Answer, Api, NoAnswer
from dspark_deploy.watch.readiness import served_models

TOKEN_S = 15  # one token of an idle pair takes well under a second, the first after a start about ten
MOVES_S = 3  # between two readings of the token counters
METRICS_S = 5
# What is printed while nothing is worked on: the HTTP access log, statistics every ten seconds, and complaints.
IDLE_TALK = (
    '"GET ',
    '"POST ',
    "Engine 0",
    "SpecDecoding metrics",
    "No available shared memory broadcast block",
    'Failed to check the "should dump" flag',
)

Verdict = Literal["generates", "quiet", "silent", "no-api", "other-api", "refuses", "locked"]


@dataclass(frozen=True, slots=True)
class Generation:
    """What the API did, and the reason in one sentence. `counters` are its own at that moment, where it told them.

    `locked`: it asks for a key and did not take ours, so that nothing can be told by asking.
    """

    verdict: Verdict
    detail: str
    counters: Counters | None = None

    @property
    def busy(self) -> bool:
        """Whether requests run or wait, as far as it is known."""
        return self.counters is not None and bool(self.counters.running or self.counters.waiting)


def ask_for_a_token(api: Api, served: Served, clock: Clock) -> Generation:
    """One token, in bounded time. A busy pair whose counters move is generating, whoever it generates for."""
    if (other := _other_api(api, served)) is not None:
        return other
    before = read_counters(api)
    found = _canary(api, served, before, TOKEN_S)
    if found.verdict != "silent":
        return found
    clock.sleep(MOVES_S)
    moved = signs_of_life(before, read_counters(api))
    if moved:
        return Generation("generates", f"busy: {moved}", before)
    return Generation("silent", f"{found.detail}, and its token counters stand still", before)


def feel_pulse(api: Api, served: Served, before: Counters | None, *, canary_s: float | None) -> Generation:
    """One look: have the counters moved since `before`? Else, where no request runs, one token is asked for.

    `canary_s` is how long that may take; None asks for none. `quiet`: nothing moved, and nothing was asked.
    """
    counters = read_counters(api)
    if counters is None and (other := _other_api(api, served)) is not None:
        return other
    if moved := signs_of_life(before, counters):
        return Generation("generates", moved, counters)
    quiet = Generation("quiet", _told(counters), counters)
    return quiet if canary_s is None or quiet.busy else _canary(api, served, counters, canary_s)


def signs_of_life(before: Counters | None, after: Counters | None) -> str:
    """What moved between two readings of one server, in words; empty where nothing did."""
    if before is None or after is None or after.tokens < before.tokens:
        return ""
    grown = {
        "tokens generated": after.get("generation_tokens") - before.get("generation_tokens"),
        "prompt tokens read": after.get("prompt_tokens") - before.get("prompt_tokens"),
    }
    moved = [f"{number:.0f} {what}" for what, number in grown.items() if number > 0]
    if after.kv_usage > before.kv_usage:
        moved.append(f"the KV pool's use grew to {100 * after.kv_usage:.1f} %")
    return ", ".join(moved)


def read_counters(api: Api) -> Counters | None:
    """The server's own; None where /metrics can't be read."""
    try:
        answer = api.get("/metrics", timeout_s=METRICS_S)
    except NoAnswer:
        return None
    return parse_counters(answer.text) if answer.status == HTTP_OK else None


def last_work(host: Host, container_id: str, *, since_s: float) -> str:
    """The last line about work that a rank printed within `since_s`; empty where there is none.

    Raises StepFailed or NodeUnreachable.
    """
    work = ""
    with closing(host.engine().logs(container_id, since_s=since_s)) as lines:
        for line in lines:
            if not any(talk in line.text for talk in IDLE_TALK):
                work = line.text.strip() or work
    return work


def _other_api(api: Api, served: Served) -> Generation | None:
    """Why what listens there is not the pair's API; None where it is."""
    try:
        models = served_models(api)
    except KeyRefused as error:
        return _locked(error)
    if models is None:
        return Generation("no-api", f"nothing answers on port {served.port} of the head yet")
    if served.served_name not in models:
        return Generation("other-api", f"port {served.port} of the head serves {', '.join(models) or 'nothing'}")
    return None


def _canary(api: Api, served: Served, counters: Counters | None, limit_s: float) -> Generation:
    request = {"model": served.served_name, "prompt": "1", "max_tokens": 1, "temperature": 0}
    try:
        answer: Answer = api.post("/v1/completions", request, timeout_s=limit_s)
    except NoAnswer as error:
        return Generation("silent", f"asked for one token: {error}", counters)
    except KeyRefused as error:
        return _locked(error)
    if answer.status == HTTP_OK:
        return Generation("generates", "one token was generated when asked", counters)
    detail = f"asked for one token, it answered HTTP {answer.status}: {answer.text[:200]}"
    return Generation("refuses", detail, counters)


def _locked(error: KeyRefused) -> Generation:
    return Generation("locked", f"{error.message}: {error.remedy}")


def _told(counters: Counters | None) -> str:
    if counters is None:
        return "it tells no counters"
    if counters.running or counters.waiting:
        return f"{counters.running} requests run, {counters.waiting} wait, and no token counter moves"
    return "no request runs"
