"""Run what measures, and end it in order where the user asks to end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dspark_deploy.remote.clock import Clock

T = TypeVar("T")
TURN_S = 0.1  # how soon an interruption is seen


def run(work: Callable[[], Coroutine[Any, Any, T]], clock: Clock) -> T:
    """The result of `work()`. Raises Interrupted once every request has been let go."""
    return asyncio.run(_watched(work, clock))


async def _watched(work: Callable[[], Coroutine[Any, Any, T]], clock: Clock) -> T:
    task = asyncio.create_task(work())
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=TURN_S)
            clock.sleep(0)
    finally:
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    return task.result()
