"""The same questions to two servers, one answer beside the other, and which of them is odd."""

from __future__ import annotations

import asyncio
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from dspark_deploy.measure.gate import asked
from dspark_deploy.measure.judged import Judged, judge_outcome
from dspark_deploy.measure.outcome import Outcome, Request
from dspark_deploy.measure.prompts import CODE, PROSE, STEADY, Prompt
from dspark_deploy.measure.side import Side
from dspark_deploy.remote.served import HTTP_OK, NoAnswer

PROMPTS = (*STEADY, PROSE[0], PROSE[2], PROSE[5], CODE[0], CODE[2])
# What a right answer has to hold, of questions that have one.
_RIGHT = {
    STEADY[0].question: re.compile(r"\b42\b"),
    STEADY[1].question: re.compile(r"(?i)monday.*tuesday.*wednesday.*thursday.*friday", re.DOTALL),
    STEADY[2].question: re.compile(r"\b1\b.*\b10\b.*\b20\b", re.DOTALL),
}
LONGER = 3.0  # times as many prompt tokens: another template or tokenizer
UNAUTHORIZED, NOT_FOUND = (401, 403), 404


class Unusable(Exception):
    """A side that can't be compared: no OpenAI API, a key refused, TLS, nothing there."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One side's answer to one question."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    ttft_s: float | None
    decode_tps: float | None
    odd: tuple[str, ...]  # what speaks against it


@dataclass(frozen=True, slots=True)
class Pairing:
    """One question and both answers."""

    question: str
    pair: Answered
    other: Answered
    same: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it. `odd_sides` names none, one or both."""

    pair: str
    other: str
    pairings: tuple[Pairing, ...]
    odd_sides: tuple[str, ...]
    verdict: str


async def find_model(side_name: str, side: Side) -> tuple[str, int | None]:
    """The first model that the server lists, and its length where it says one. Raises Unusable."""
    try:
        answer = await side.client.get("/v1/models")
    except NoAnswer as error:
        raise Unusable(f"{side_name}: {'TLS: ' if error.tls else ''}{error}") from error
    if answer.status in UNAUTHORIZED:
        raise Unusable(f"{side_name}: HTTP {answer.status}: the key is missing or refused")
    match answer.document():
        case {"data": [{"id": str(model), **more}, *_]} if answer.status == HTTP_OK:
            length = more.get("max_model_len")
            return model, length if isinstance(length, int) else None
        case _:
            words = " ".join(answer.text.split())[:120]
            raise Unusable(f"{side_name}: no OpenAI API: /v1/models answers HTTP {answer.status}: {words}")


async def run_compare(pair: Side, other: Side, say: Callable[[str], None]) -> Comparison:
    """Both sides at once, one question after the other. Raises Unusable where a side refuses every question."""
    pairings = []
    for number, prompt in enumerate(PROMPTS, 1):
        outcomes = await asyncio.gather(*(_ask(side, prompt) for side in (pair, other)))
        for side, outcome in zip((pair, other), outcomes, strict=True):
            _refuse_unusable(side, outcome)
        mine, theirs = (_answered(outcome, prompt) for outcome in outcomes)
        pairings.append(Pairing(prompt.question, mine, theirs, mine.text == theirs.text))
        say(f"[{number}/{len(PROMPTS)}] {prompt.question[:60]}")
    return _judged(pair.name, other.name, tuple(pairings))


async def _ask(side: Side, prompt: Prompt) -> Outcome:
    request: Request = asked(side, prompt)
    return await side.client.stream(request)


def _refuse_unusable(side: Side, outcome: Outcome) -> None:
    if outcome.status in UNAUTHORIZED:
        raise Unusable(f"{side.name}: HTTP {outcome.status}: the key is missing or refused")
    if outcome.tls:
        raise Unusable(f"{side.name}: TLS: {outcome.why}")
    if outcome.status == NOT_FOUND or (outcome.failure == "shape" and not outcome.text):
        raise Unusable(f"{side.name}: no OpenAI API, or no such model: {outcome.why}")
    if outcome.failure == "refused" and not outcome.text:
        raise Unusable(f"{side.name}: {outcome.why}")


def _answered(outcome: Outcome, prompt: Prompt) -> Answered:
    judged: Judged = judge_outcome(outcome, prompt)
    odd = [f"{alarm.kind}: {alarm.evidence}" for alarm in judged.alarms]
    odd += [judged.failure] if judged.failure else []
    right = _RIGHT.get(prompt.question)
    if right and not judged.failure and not right.search(outcome.text.replace(outcome.request.nonce, "")):
        odd.append(f"wrong: {outcome.text[:80]}")
    return Answered(
        outcome.text, outcome.prompt_tokens, outcome.completion_tokens, outcome.ttft_s, outcome.decode_tps, tuple(odd)
    )


def _judged(pair: str, other: str, pairings: tuple[Pairing, ...]) -> Comparison:
    odd = {pair: sum(bool(each.pair.odd) for each in pairings), other: sum(bool(each.other.odd) for each in pairings)}
    names = (pair, other) if pair != other else (pair,)
    odd_sides = tuple(name for name in names if odd[name])
    if not odd_sides:
        same = sum(each.same for each in pairings)
        verdict = f"neither side is odd; {same} of {len(pairings)} answers are the same to the byte"
    elif len(odd_sides) == len(names) > 1:
        verdict = "both sides are odd: " + ", ".join(f"{name} in {odd[name]} answers" for name in names)
    else:
        verdict = f"{odd_sides[0]} is odd, in {odd[odd_sides[0]]} of {len(pairings)} answers"
    return Comparison(pair, other, pairings, odd_sides, f"{verdict}{_lengths(pairings)}")


def _lengths(pairings: tuple[Pairing, ...]) -> str:
    """A sentence more where the two count the same prompt very differently."""
    ratios = [
        max(each.pair.prompt_tokens, each.other.prompt_tokens) / min(each.pair.prompt_tokens, each.other.prompt_tokens)
        for each in pairings
        if each.pair.prompt_tokens and each.other.prompt_tokens
    ]
    if ratios and statistics.median(ratios) >= LONGER:
        return "; they count the same prompts very differently: another template or tokenizer"
    return ""
