"""What the server behind the API tells of itself: its counters, and which program it is."""

from __future__ import annotations

from dataclasses import dataclass

from dspark_deploy.facts.metrics import Acceptance, Between, Counters, between, since_start
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.served import Api, NoAnswer
from dspark_deploy.watch.generation import read_counters

ANSWER_S = 5.0
RATE_S = 1.0  # between two readings of a busy server; shorter ones tell the length of a step


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters at one moment."""

    at_s: float  # on the clock that it was read by
    counters: Counters


@dataclass(frozen=True, slots=True)
class Load:
    """What the server does. Rates are of the time between two readings; None where there is only one."""

    running: int
    waiting: int
    kv_usage: float  # share of the KV pool, 0 to 1
    preemptions: int  # since the server's start
    prompt_tps: float | None  # prompt tokens a second
    generation_tps: float | None  # tokens a second
    over_s: float | None
    acceptance: float | None  # accepted of drafted tokens; None: nothing was drafted
    accepted_per_draft: float | None
    acceptance_since_start: bool  # else between the readings


@dataclass(frozen=True, slots=True)
class Server:
    """What answers. `stand_in` is what a stand-in says of itself; None for a real one."""

    version: str | None
    stand_in: str | None


def read_metrics(api: Api, clock: Clock) -> Reading | None:
    """None where nothing answers, or nothing that is vLLM's."""
    counters = read_counters(api)
    return None if counters is None else Reading(clock.now(), counters)


def read_server(api: Api) -> Server | None:
    """None where nothing answers, or nothing of that shape."""
    try:
        document = api.get("/version", timeout_s=ANSWER_S).document()
    except NoAnswer:
        return None
    if not isinstance(document, dict):
        return None
    told = {name: str(document[name]) if document.get(name) else None for name in ("version", "stand_in")}
    return Server(**told)


def load_of(before: Reading | None, after: Reading) -> Load:
    """What two readings say. Without the first, or across a restart of the server, there are no rates."""
    grown = None if before is None else between(before.counters, after.counters)
    seconds = 0.0 if before is None else after.at_s - before.at_s
    moved = grown if seconds > 0 else None
    acceptance, whole = _acceptance(moved, since_start(after.counters))
    return Load(
        running=after.counters.running,
        waiting=after.counters.waiting,
        kv_usage=after.counters.kv_usage,
        preemptions=round(after.counters.get("num_preemptions")),
        prompt_tps=None if moved is None else moved.prompt_tokens / seconds,
        generation_tps=None if moved is None else moved.generated_tokens / seconds,
        over_s=None if moved is None else seconds,
        acceptance=acceptance.rate if acceptance else None,
        accepted_per_draft=acceptance.per_draft if acceptance else None,
        acceptance_since_start=whole,
    )


def _acceptance(moved: Between | None, whole: Between | None) -> tuple[Acceptance | None, bool]:
    """Of what was drafted between the readings, else of all that ever was; and whether it is the latter."""
    if moved is not None and moved.acceptance is not None:
        return moved.acceptance, False
    return (whole.acceptance if whole else None), True
