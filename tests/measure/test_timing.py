"""Figures against a server whose schedule is known exactly."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from dspark_deploy.measure.bench_decode import Method, bench_decode
from dspark_deploy.measure.bench_sweep import bench_sweep
from dspark_deploy.measure.decode import Trial
from dspark_deploy.measure.overhead import Overhead, metered
from dspark_deploy.measure.side import Side
from dspark_deploy.measure.sweep import Cell, Plan
from tests.measure.conftest import asked, silent
from tests.rehearsal.standin.loopback import Loopback, loopback

pytestmark = pytest.mark.timing

T = TypeVar("T")
TTFT_S, RATE, TOKENS, PROMPT = 1.0, 100.0, 201, 256
DECODE_S = (TOKENS - 1) / RATE
TRIES = 4  # of a measurement whose own overhead says that this machine was busy with something else


@pytest.fixture(scope="module", autouse=True)
def _preferred() -> Iterator[None]:
    """Run before others on this machine, with the servers that we start: the client is measured, not the load."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):  # only root may; others repeat where the machine is busy
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    yield
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.fixture(scope="module")
def serving(_preferred: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """A pair of its own, started with that preference."""
    with loopback(tmp_path_factory.mktemp("timed")) as pair:
        pair.serve("--max-num-seqs", "16")
        yield pair


def test_each_figure_of_a_sweep_is_within_two_per_cent_of_the_schedule(serving: Loopback) -> None:
    serving.switches(0, first_token_s=TTFT_S, decode_tps=RATE)
    cells = undisturbed(serving.api_port, sweep_of_one_length, lambda found: all(map(fits, found)))
    assert [cell.concurrency for cell in cells] == [1, 6, 16]
    for cell in cells:
        assert cell.ttft_s == pytest.approx(TTFT_S, rel=0.02)
        assert cell.ttft_p95_s == pytest.approx(TTFT_S, rel=0.02)
        assert cell.prefill_tps == pytest.approx(PROMPT / TTFT_S, rel=0.02)
        assert cell.decode_tps == pytest.approx(RATE, rel=0.02)
        assert cell.aggregate_tps == pytest.approx(cell.concurrency * TOKENS / (TTFT_S + DECODE_S), rel=0.02)
        assert cell.failures == ()
        assert cell.exact


@pytest.mark.parametrize("concurrency", [3, 16])
def test_decode_rates_are_within_two_per_cent_of_the_schedule(serving: Loopback, concurrency: int) -> None:
    serving.switches(0, first_token_s=0.1, decode_tps=RATE)
    near = pytest.approx(concurrency * RATE, rel=0.02)

    async def work(side: Side) -> Trial:
        (lane,) = await bench_decode(side, Method((concurrency,), 1, TOKENS), silent)
        assert lane.median is not None
        return lane.median

    trial = undisturbed(serving.api_port, work, lambda found: found.aggregate_tps == near)
    assert trial.aggregate_tps == near
    assert trial.mean_stream_tps == pytest.approx(RATE, rel=0.02)


def test_staggered_arrivals_are_apart(serving: Loopback) -> None:
    serving.switches(0, first_token_s=0.05, decode_tps=RATE)

    async def work(side: Side) -> float:
        (lane,) = await bench_decode(side, Method((3,), 1, 51, "staggered", 0.3), silent)
        assert lane.median is not None
        return lane.median.window_s

    window_s = 2 * 0.3 + 50 / RATE
    near = pytest.approx(window_s, rel=0.02)
    assert undisturbed(serving.api_port, work, lambda found: found == near) == near


def test_sixteen_streams_of_a_hundred_tokens_take_less_than_half_a_core(tmp_path: Path) -> None:
    with loopback(tmp_path) as pair:
        # Without drafts each token is an event of its own: 1600 of them a second.
        drafts = '{"method":"dspark","num_speculative_tokens":0}'
        pair.switches(0, first_token_s=0.2, decode_tps=RATE)
        pair.serve("--max-num-seqs", "16", "--speculative-config", drafts)

        async def work(side: Side) -> Overhead:
            async with metered() as meter:
                (lane,) = await bench_decode(side, Method((16,), 1, 151), silent)
                assert lane.median is not None
                assert lane.median.tokens == 16 * 150
            return meter.read()

        assert asked(pair.api_port, work).cpu_share < 0.5


async def sweep_of_one_length(side: Side) -> list[Cell]:
    """One row of a sweep."""
    cells: list[Cell] = []
    plan = Plan((PROMPT,), (1, 6, 16), 1, TOKENS, cool_s=0.05)
    await bench_sweep(side, plan, (), cells.append, silent)
    return cells


def fits(cell: Cell) -> bool:
    """Whether nothing but the schedule is seen."""
    return cell.ttft_p95_s == pytest.approx(TTFT_S, rel=0.02) and cell.decode_tps == pytest.approx(RATE, rel=0.02)


def undisturbed(port: int, work: Callable[[Side], Awaitable[T]], fits: Callable[[T], bool]) -> T:
    """The measurement; repeated where it does not fit while more wants to run on this machine than it has cores."""
    for _ in range(TRIES - 1):
        found = asked(port, work)
        if fits(found) or os.getloadavg()[0] < (os.cpu_count() or 1):
            return found
    return asked(port, work)
