"""An interruption ends what measures, in order."""

from __future__ import annotations

import asyncio

import pytest

from dspark_deploy.errors import Interrupted
from dspark_deploy.measure.loop import run
from dspark_deploy.remote.clock import SystemClock


class Interrupting(SystemClock):
    """A clock at which the user has asked to end."""

    def sleep(self, seconds: float) -> None:
        del seconds
        raise Interrupted("interrupted by SIGINT", remedy="run it again")


def test_the_result_comes_back() -> None:
    async def work() -> int:
        await asyncio.sleep(0.01)
        return 42

    assert run(work, SystemClock()) == 42


def test_what_is_raised_comes_back() -> None:
    async def work() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        run(work, SystemClock())


def test_an_interruption_lets_every_request_go() -> None:
    let_go = []

    async def one() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            let_go.append(True)

    async def work() -> None:
        await asyncio.gather(one(), one())

    with pytest.raises(Interrupted):
        run(work, Interrupting())
    assert let_go == [True, True]
