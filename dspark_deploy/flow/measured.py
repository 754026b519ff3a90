"""One measurement of the pair, from its side to the store: what all commands that measure have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.record import state_home
from dspark_deploy.flow.serving import Serving, origin_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.measure.client import Client, Tally
from dspark_deploy.measure.loop import run
from dspark_deploy.measure.overhead import Overhead, metered, round_trip
from dspark_deploy.measure.side import Side
from dspark_deploy.measure.store import Kind, Measurement, Origin, Store, new_id
from dspark_deploy.remote.clock import Clock

T = TypeVar("T")
PAIR = "the pair"


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """A measurement, and where it lies; None where it could not be kept."""

    measurement: Measurement[T]
    path: Path | None


class Bench:
    """Measures one serving pair and keeps what comes."""

    def __init__(self, serving: Serving, wish: Wish, observer: Observer, clock: Clock) -> None:
        self._serving = serving
        self._observer = observer
        self._clock = clock
        self.origin: Origin = origin_of(serving, clock)
        self.store = Store(state_home(wish.environment, wish.home), serving.served.pair)

    def measure(
        self,
        kind: Kind,
        work: Callable[[Side], Awaitable[T]],
        warnings: Callable[[T], tuple[str, ...]] = lambda _: (),
    ) -> Kept[T]:
        """Have `work` ask the pair, and keep its result under a new id."""
        began, began_s = datetime.now(UTC), self._clock.now()
        result, overhead, tally = self.run(work)
        told = (*warnings(result), *filter(None, [overhead.warning]))
        measurement = Measurement(
            id=new_id(kind, began),
            kind=kind,
            began=began.isoformat(timespec="seconds"),
            seconds=self._clock.now() - began_s,
            origin=self.origin,
            result=result,
            overhead=overhead,
            tally=tally,
            warnings=told,
        )
        for warning in told:
            self._observer.warn(warning)
        return Kept(measurement, self.keep(measurement))

    def run(self, work: Callable[[Side], Awaitable[T]]) -> tuple[T, Overhead, Tally]:
        """Have `work` ask the pair. Raises NoAnswer where the API is gone, Interrupted where the user ends it."""
        return run(lambda: self._asked(work), self._clock)

    def keep(self, measurement: Measurement[Any]) -> Path | None:
        """Write it; a measurement that can't be kept is told and stops nothing."""
        try:
            return self.store.write(measurement)
        except OSError as error:
            self._observer.warn(f"the measurement can't be kept in {self.store.folder}: {error.strerror}")
            return None

    async def _asked(self, work: Callable[[Side], Awaitable[T]]) -> tuple[T, Overhead, Tally]:
        served = self._serving.served
        async with self._serving.streams() as streams:
            client = Client(streams)
            side = Side(PAIR, client, served.served_name, served.max_model_len)
            seconds = await round_trip(client)
            async with metered() as meter:
                meter.round_trip_s = seconds
                result = await work(side)
                return result, meter.read(), client.tally
