"""What the measuring itself costs: processor time, a loop that comes late, and the way to the server."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from dspark_deploy.measure.client import Client

TURN_S = 0.02  # between two looks at how late the loop is
BUSY_CPU = 0.5  # of a core: from here on the client's own work delays what it times
BUSY_LATE_S = 0.02  # p95
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Overhead:
    """The client's own part. Every event's time may be late by `late_p95_s`; a TTFT holds one `round_trip_s`."""

    cpu_share: float  # of one core
    late_p95_s: float
    late_max_s: float
    round_trip_s: float | None = None  # median of a small GET; None: not asked

    @property
    def warning(self) -> str:
        """One sentence where the figures can't be trusted for it, else empty."""
        if self.cpu_share <= BUSY_CPU and self.late_p95_s <= BUSY_LATE_S:
            return ""
        return (
            f"this machine was busy: the client took {self.cpu_share:.0%} of a core and read events up to "
            f"{self.late_max_s * 1000:.0f} ms late; measure from a quieter one"
        )


@dataclass(slots=True)
class Meter:
    """Filled in while it runs; `read` at any time."""

    began_s: float = field(default_factory=time.monotonic)
    began_cpu_s: float = field(default_factory=time.process_time)
    late_s: list[float] = field(default_factory=list)
    round_trip_s: float | None = None

    def read(self) -> Overhead:
        """So far."""
        elapsed = max(time.monotonic() - self.began_s, 1e-9)
        late = sorted(self.late_s) or [0.0]
        return Overhead(
            cpu_share=(time.process_time() - self.began_cpu_s) / elapsed,
            late_p95_s=late[int(0.95 * (len(late) - 1))],
            late_max_s=late[-1],
            round_trip_s=self.round_trip_s,
        )


@asynccontextmanager
async def metered() -> AsyncIterator[Meter]:
    """Watch the loop while the block runs."""
    meter = Meter()
    watcher = asyncio.create_task(_watch(meter))
    try:
        yield meter
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher


async def round_trip(client: Client) -> float:
    """Seconds of a small GET on a connection that is open already, median of a few. Raises NoAnswer."""
    await client.get("/v1/models")
    seconds = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        await client.get("/v1/models")
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds)


async def _watch(meter: Meter) -> None:
    while True:
        due = time.monotonic() + TURN_S
        await asyncio.sleep(TURN_S)
        meter.late_s.append(time.monotonic() - due)
