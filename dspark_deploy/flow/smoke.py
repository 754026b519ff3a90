"""`smoke`: does what is served answer sanely; --gate under load, --churn among comers and goers, --deep once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dspark_deploy.errors import NotAsWanted
from dspark_deploy.flow.measured import Bench, Kept
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.published import minutes, ttft_for
from dspark_deploy.flow.serving import open_serving
from dspark_deploy.flow.wish import Wish
from dspark_deploy.measure.churn import ChurnResult, run_churn
from dspark_deploy.measure.deep import DeepResult, run_deep
from dspark_deploy.measure.gate import GateResult, levels_up_to, run_gate
from dspark_deploy.measure.side import Side
from dspark_deploy.measure.store import SmokeResult
from dspark_deploy.measure.suite import run_smoke
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.served import NoAnswer

MOST = 6  # at once, where the pair does not say how many sequences it runs


@dataclass(frozen=True, slots=True)
class SmokeWish:
    """What is asked beside the smoke itself. `most` None: the profile's own number of sequences, at most 6."""

    gate: bool = False
    churn: bool = False
    deep: int | None = None  # prompt tokens
    most: int | None = None


@dataclass(frozen=True, slots=True)
class SmokeReport:
    """Everything that was asked; None what was not. `records` are the files that it is kept in."""

    passed: bool
    smoke: SmokeResult
    gate: GateResult | None
    churn: ChurnResult | None
    deep: DeepResult | None
    records: tuple[str, ...]
    warnings: tuple[str, ...]


def prove(wish: Wish, more: SmokeWish, observer: Observer, clock: Clock) -> SmokeReport:
    """Raises NotAsWanted where nothing serves."""
    with open_serving(wish, clock) as serving:
        bench = Bench(serving, wish, observer, clock)
        try:
            return _Proof(bench, more, observer).all()
        except NoAnswer as error:
            raise gone(error) from error


def gone(error: NoAnswer) -> NotAsWanted:
    """The server went away while it was asked."""
    return NotAsWanted(
        f"head: the API no longer answers: {error}",
        remedy="`dspark status` tells what is left, `dspark logs head` why",
        node="head",
    )


@dataclass(frozen=True, slots=True)
class _Proof:
    bench: Bench
    more: SmokeWish
    observer: Observer

    def all(self) -> SmokeReport:
        kept: list[Kept[Any]] = [self.bench.measure("smoke", self._smoke)]
        most = self.more.most or min(MOST, self.bench.origin.max_num_seqs or MOST)
        if self.more.gate:
            levels = levels_up_to(most)
            kept.append(self.bench.measure("gate", lambda side: run_gate(side, levels, self.observer.note)))
        if self.more.churn:
            kept.append(self.bench.measure("churn", lambda side: run_churn(side, most, self.observer.note)))
        if self.more.deep is not None:
            kept.append(self._deep(self.more.deep))
        results = {each.measurement.kind: each.measurement.result for each in kept}
        return SmokeReport(
            passed=all(result.passed for result in results.values()),
            smoke=results["smoke"],
            gate=results.get("gate"),
            churn=results.get("churn"),
            deep=results.get("deep"),
            records=tuple(str(each.path) for each in kept if each.path is not None),
            warnings=tuple(warning for each in kept for warning in each.measurement.warnings),
        )

    def _deep(self, tokens: int) -> Kept[DeepResult]:
        published_s = ttft_for(self.bench.origin, tokens)
        self.observer.note(
            f"one prompt of {tokens} tokens: {minutes(published_s) if published_s else 'nobody knows how long'}"
        )
        return self.bench.measure("deep", lambda side: run_deep(side, tokens, published_s))

    async def _smoke(self, side: Side) -> SmokeResult:
        found = [each async for each in run_smoke(side, side.max_model_len)]
        return SmokeResult(tuple(finding for finding, _ in found), tuple(seconds for _, seconds in found))
