"""Churn: requests come and leave in the middle, and one answer that has to be the same must stay the same."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from dspark_deploy.measure.gate import asked
from dspark_deploy.measure.prompts import PROSE, STEADY
from dspark_deploy.measure.side import Side

ROUNDS = 8
COMES_S = (0.05, 0.4)  # between two arrivals
STAYS_S = (0.2, 2.0)  # until one leaves
VICTIM = STEADY[2]


@dataclass(frozen=True, slots=True)
class ChurnResult:
    """The victim's answer alone, and every other one that it gave among the others."""

    answer: str
    asked: int
    came: int
    left: int  # before their answers had ended
    other_answers: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether it was the same, byte for byte, each time."""
        return not self.other_answers and not self.failures


@dataclass(slots=True)
class _Crowd:
    came: int = 0
    left: int = 0
    members: set[asyncio.Task[None]] = field(default_factory=set)


async def run_churn(
    side: Side,
    most: int,
    say: Callable[[str], None],
    *,
    rounds: int = ROUNDS,
    stays_s: tuple[float, float] = STAYS_S,
) -> ChurnResult:
    """`most` requests at once, the victim among them."""
    request = asked(side, VICTIM)
    outcomes = [await side.client.stream(request), await side.client.stream(request)]
    crowd = _Crowd()
    coming = asyncio.create_task(_come(side, max(1, most - 1), crowd, stays_s))
    try:
        for number in range(rounds):
            outcomes.append(await side.client.stream(request))
            say(f"round {number + 1} of {rounds}: {crowd.came} came, {crowd.left} left")
    finally:
        coming.cancel()
        for member in tuple(crowd.members):
            member.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await coming
        await asyncio.gather(*crowd.members, return_exceptions=True)
    good = [each.text for each in outcomes if each.ok]
    answer = good[0] if good else ""
    return ChurnResult(
        answer=answer,
        asked=len(outcomes),
        came=crowd.came,
        left=crowd.left,
        other_answers=tuple(dict.fromkeys(text for text in good if text != answer)),
        failures=tuple(f"{each.failure}: {each.why}" for each in outcomes if not each.ok),
    )


async def _come(side: Side, most: int, crowd: _Crowd, stays_s: tuple[float, float]) -> None:
    chance = random.Random(0)  # noqa: S311  not a secret: every run sees the same crowd
    while True:
        if len(crowd.members) < most:
            crowd.came += 1
            stay_s = chance.uniform(*stays_s)
            member = asyncio.create_task(_visit(side, crowd, stay_s))
            crowd.members.add(member)
            member.add_done_callback(crowd.members.discard)
        await asyncio.sleep(chance.uniform(*COMES_S))


async def _visit(side: Side, crowd: _Crowd, stay_s: float) -> None:
    request = asked(side, PROSE[crowd.came % len(PROSE)], copy=1 + crowd.came % 60)
    try:
        async with asyncio.timeout(stay_s):
            await side.client.stream(request)
    except TimeoutError:
        crowd.left += 1
