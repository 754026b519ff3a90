"""`bench decode` and `bench sweep`: how fast what is served is, kept and set beside what was published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dspark_deploy.errors import ConfigError, Interrupted
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.measured import Bench
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.published import minutes, published_for
from dspark_deploy.flow.serving import open_serving
from dspark_deploy.flow.smoke import gone
from dspark_deploy.flow.wish import Wish
from dspark_deploy.measure.bench_decode import CONCURRENCY, Method, bench_decode
from dspark_deploy.measure.bench_sweep import bench_sweep
from dspark_deploy.measure.decode import Lane
from dspark_deploy.measure.lanes import BAND, PublishedLane, find_lane, load_lanes, set_beside
from dspark_deploy.measure.side import Side
from dspark_deploy.measure.store import DecodeResult, Measurement, Origin, SweepResult, new_id
from dspark_deploy.measure.sweep import Cell, Plan, budget_s, fitting
from dspark_deploy.measure.trends import Trend, read_trends
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.served import NoAnswer


@dataclass(frozen=True, slots=True)
class BenchReport:
    """A measurement and where it is kept."""

    measurement: Measurement[Any]
    record: str | None
    trends: tuple[Trend, ...] = ()


def run_decode(
    wish: Wish, method: Method, observer: Observer, clock: Clock, *, expect: str | None = None, band: float = BAND
) -> BenchReport:
    """Decode rates. Raises ConfigError for a lane that nobody published, NotAsWanted where nothing serves."""
    lane = find_lane(load_lanes(), expect, method.arrivals) if expect else None
    with open_serving(wish, clock) as serving:
        bench = Bench(serving, wish, observer, clock)
        most = bench.origin.max_num_seqs
        if not method.concurrency:
            chosen = tuple(each for each in CONCURRENCY if most is None or each <= most)
            method = replace(method, concurrency=chosen or (1,))
        if most is not None and max(method.concurrency) > most:
            observer.warn(f"the pair runs {most} requests at once: more of them wait in line, and the rates show it")

        async def work(side: Side) -> DecodeResult:
            lanes = await bench_decode(side, method, observer.note)
            return _beside(DecodeResult(method, lanes), lane, band)

        try:
            kept = bench.measure("decode", work, lambda result: tuple(_doubts(result.lanes, lane, bench.origin, wish)))
        except NoAnswer as error:
            raise gone(error) from error
    return BenchReport(kept.measurement, str(kept.path) if kept.path else None)


def _beside(result: DecodeResult, lane: PublishedLane | None, band: float) -> DecodeResult:
    if lane is None:
        return result
    drift = set_beside(result.lanes, lane, band)
    return replace(result, expected=lane.name, expected_source=lane.source, band=band, drift=drift)


def _doubts(lanes: Sequence[Lane], lane: PublishedLane | None, origin: Origin, wish: Wish) -> Iterator[str]:
    trials = [trial for each in lanes for trial in each.trials]
    if failed := [why for trial in trials for why in trial.failures]:
        yield f"{len(failed)} requests failed and are in no figure: {failed[0]}"
    if foreign := sum(trial.foreign_tokens for trial in trials):
        yield f"{foreign} tokens were generated for somebody else meanwhile: measure while nobody uses the pair"
    if preempted := sum(trial.preemptions for trial in trials):
        yield f"{preempted} preemptions: the KV pool was full, and these rates are no decode rates"
    if lane is not None:
        model = catalogue_of(wish).model(lane.model)
        if origin.model not in {model.id, model.directory}:
            yield f"--expect {lane.name} was measured with {model.name}, the pair serves {origin.model}"


def run_sweep(wish: Wish, plan: Plan, observer: Observer, clock: Clock, *, resume: str | None = None) -> BenchReport:
    """A sweep, kept after every cell. `resume`: a kept one's id, or empty for the latest that is unfinished."""
    with open_serving(wish, clock) as serving:
        bench = Bench(serving, wish, observer, clock)
        measurement = _resumed(bench, resume) if resume is not None else _begun(bench, plan)
        return _Sweep(bench, observer, clock, measurement).all()


@dataclass(slots=True)
class _Sweep:
    bench: Bench
    observer: Observer
    clock: Clock
    measurement: Measurement[SweepResult]

    def all(self) -> BenchReport:
        result, began_s, before_s = self.measurement.result, self.clock.now(), self.measurement.seconds
        for line in result.left_out:
            self.observer.warn(f"left out: {line}")
        seconds = budget_s(result.plan, published_for(self.bench.origin), result.missing)
        self.observer.note(f"{len(result.missing)} cells of {result.plan.trials} trials: {minutes(seconds)}")
        done = {(cell.prompt, cell.concurrency) for cell in result.cells}

        def keep(cell: Cell) -> None:
            self.measurement = replace(
                self.measurement,
                result=replace(self.measurement.result, cells=(*self.measurement.result.cells, cell)),
                seconds=before_s + self.clock.now() - began_s,
            )
            self.bench.keep(self.measurement)

        async def work(side: Side) -> None:
            await bench_sweep(side, result.plan, done, keep, self.observer.note)

        try:
            _, overhead, tally = self.bench.run(work)
        except NoAnswer as error:
            raise gone(error) from error
        except Interrupted as error:
            raise self._interrupted(error) from error
        warnings = tuple(_cell_doubts(self.measurement.result.cells)) + tuple(filter(None, [overhead.warning]))
        self.measurement = replace(self.measurement, overhead=overhead, tally=tally, warnings=warnings)
        path = self.bench.keep(self.measurement)
        for warning in warnings:
            self.observer.warn(warning)
        trends = read_trends(self.measurement.result.cells)
        return BenchReport(self.measurement, str(path) if path else None, trends)

    def _interrupted(self, error: Interrupted) -> Interrupted:
        result = self.measurement.result
        return Interrupted(
            f"{error.message}: {len(result.cells)} of {len(result.plan.cells)} cells are measured and kept",
            why=str(self.bench.store.folder / self.measurement.id),
            remedy="`dspark bench sweep --resume` goes on, `dspark report` shows what there is",
        )


def _begun(bench: Bench, plan: Plan) -> Measurement[SweepResult]:
    fitted, left_out = fitting(plan, max_model_len=bench.origin.max_model_len, most=bench.origin.max_num_seqs)
    if not fitted.cells:
        raise ConfigError("no cell of this sweep fits the pair", why="\n".join(left_out), remedy="name shorter prompts")
    began = datetime.now(UTC)
    result = SweepResult(fitted, (), left_out)
    stamp = began.isoformat(timespec="seconds")
    return Measurement(new_id("sweep", began), "sweep", stamp, 0.0, bench.origin, result)


def _resumed(bench: Bench, name: str) -> Measurement[SweepResult]:
    """The kept sweep that goes on. Its cells have to be of the release that serves now."""
    found = [bench.store.named(name)] if name else [each for each in bench.store.all("sweep") if each.result.missing]
    if not found or found[-1].kind != "sweep":
        raise ConfigError("no unfinished sweep is kept of this pair", remedy="leave --resume out to begin one")
    measurement = found[-1]
    if measurement.origin.release != bench.origin.release:
        raise ConfigError(
            f"{measurement.id} measured release {measurement.origin.release}, the pair serves {bench.origin.release}",
            remedy="leave --resume out: cells of two releases make no sweep",
        )
    return measurement


def _cell_doubts(cells: Sequence[Cell]) -> Iterator[str]:
    if failed := [why for cell in cells for why in cell.failures]:
        yield f"{len(failed)} requests failed and are in no figure: {failed[0]}"
    if loose := [cell.prompt for cell in cells if not cell.exact]:
        lengths = ", ".join(map(str, sorted(set(loose))))
        yield f"prompts of {lengths} tokens are not exact: the server does not count, or no text came to just so many"
    for cell in cells:
        if cell.unfinished:
            yield f"{cell.prompt} tokens x {cell.concurrency} is unfinished: {cell.unfinished}"
