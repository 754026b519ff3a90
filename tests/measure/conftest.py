"""Stand-in servers to measure: one that is as fast as it goes, and one with an exactly known timing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from dspark_deploy.measure.client import Client
from dspark_deploy.measure.side import Side
from dspark_deploy.remote.streams import endpoint_streams
from tests.rehearsal.standin.loopback import Loopback, loopback

T = TypeVar("T")
MODEL, MAX_MODEL_LEN = "dsv4", 350_000


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """A pair of stand-in engines; `serving` brings its switches back to none."""
    with loopback(tmp_path_factory.mktemp("standin")) as pair:
        pair.serve("--reasoning-parser", "deepseek_v4", "--max-num-seqs", "16")
        yield pair


@pytest.fixture
def serving(standin: Loopback) -> Iterator[Loopback]:
    """The same pair, healthy."""
    standin.switches(0)
    yield standin
    standin.switches(0)


@asynccontextmanager
async def side_of(port: int, **given: Any) -> Any:
    """The server on that port of loopback as a side."""
    async with endpoint_streams(f"http://127.0.0.1:{port}") as streams:
        yield Side("the stand-in", Client(streams, **given), MODEL, MAX_MODEL_LEN)


def asked(port: int, work: Callable[[Side], Awaitable[T]], **given: Any) -> T:
    """What `work` makes of that side."""

    async def run() -> T:
        async with side_of(port, **given) as side:
            return await work(side)

    return asyncio.run(run())


def silent(text: str) -> None:
    """Nobody listens."""
