"""The quality gate: the same questions at rising concurrency, all answers judged, steady ones compared by byte."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dspark_deploy.measure.judged import Judged, hint, judge_outcome
from dspark_deploy.measure.outcome import Request
from dspark_deploy.measure.prompts import PROMPTS, Prompt, code_of, system_of, worded
from dspark_deploy.measure.side import Side

LEVELS = (1, 2, 4, 6)
REPEATS = 3  # of a steady prompt at each level


@dataclass(frozen=True, slots=True)
class Differs:
    """A steady prompt with more than one answer: each with how often it came."""

    label: str
    answers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GateResult:
    """Everything that was asked. `bad` is the evidence."""

    levels: tuple[int, ...]
    answers: int
    bad: tuple[Judged, ...]
    differs: tuple[Differs, ...]
    hint: str

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against what is served."""
        return not self.bad and not self.differs


def levels_up_to(most: int) -> tuple[int, ...]:
    """1, 2, 4 and 6, as far as the profile's sequences go, and those themselves where they are fewer or more."""
    return (*(each for each in LEVELS if each < most), most)


async def run_gate(side: Side, levels: Sequence[int], say: Callable[[str], None]) -> GateResult:
    """Every level in turn."""
    judged: list[Judged] = []
    for level in levels:
        found = await _level(side, level)
        bad = sum(not each.ok for each in found)
        say(f"{level} at once: {len(found)} answers, {bad or 'none'} bad")
        judged += found
    differs = tuple(_differing(judged))
    bad_ones = tuple(each for each in judged if not each.ok)
    kinds = [alarm.kind for each in bad_ones for alarm in each.alarms] + (["differs"] if differs else [])
    return GateResult(tuple(levels), len(judged), bad_ones, differs, hint(kinds, bad_ones))


def asked(side: Side, prompt: Prompt, copy: int = 0) -> Request:
    """A prompt as a request that carries its code."""
    code = code_of(prompt, copy)
    body = side.chat(worded(prompt, code), tokens=prompt.tokens, system=system_of(prompt))
    return Request(prompt.question, body, nonce=code)


async def _level(side: Side, level: int) -> list[Judged]:
    """All prompts with `level` of them running at any moment."""
    work = list(_work(side))
    codes = tuple({request.nonce for _, request in work})
    room = asyncio.Semaphore(level)

    async def one(prompt: Prompt, request: Request) -> Judged:
        async with room:
            outcome = await side.client.stream(request)
        return judge_outcome(outcome, prompt, concurrency=level, others=codes)

    return list(await asyncio.gather(*(one(prompt, request) for prompt, request in work)))


def _work(side: Side) -> Iterator[tuple[Prompt, Request]]:
    """Steady prompts stand between the others again and again, so that they meet different neighbours."""
    steady = [prompt for prompt in PROMPTS if prompt.steady]
    others = [prompt for prompt in PROMPTS if not prompt.steady]
    share = -(-len(others) // REPEATS)
    for turn in range(REPEATS):
        for prompt in (*steady, *others[turn * share : (turn + 1) * share]):
            yield prompt, asked(side, prompt)


def _differing(judged: Sequence[Judged]) -> Iterator[Differs]:
    steady = {prompt.question for prompt in PROMPTS if prompt.steady}
    answers: dict[str, dict[str, int]] = defaultdict(dict)
    for each in judged:
        if each.label in steady and not each.failure:
            seen = answers[each.label]
            seen[each.answer] = seen.get(each.answer, 0) + 1
    for label, seen in answers.items():
        if len(seen) > 1:
            yield Differs(label, tuple(sorted(seen.items(), key=lambda pair: -pair[1])))
