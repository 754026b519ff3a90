"""What a rank that runs has printed."""

from __future__ import annotations

import pytest

from dspark_deploy.boot.diagnosis import diagnose
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.watch import costly
from dspark_deploy.watch.costly import RankLog
from tests.fakes import FakeEngine
from tests.flow.stand import FakeClock
from tests.samples import container

SLOW = "WARNING Auto-enabling VLLM_USE_BREAKABLE_CUDAGRAPH=1. Set VLLM_USE_BREAKABLE_CUDAGRAPH=0 to opt out."
JIT = "WARNING CuTeDSL JIT compilation during inference"
IDLE = "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 0 reqs"
BUSY = IDLE.replace("generation throughput: 0.0", "generation throughput: 61.3")
READY = "INFO: Application startup complete."


@pytest.fixture(name="engine")
def _engine() -> FakeEngine:
    return FakeEngine("head")


def failures(log: RankLog) -> list[str | None]:
    return [each.failure for each in diagnose(log.boots, bundled_rules().signatures).warnings]


def test_what_makes_it_slow_is_found_in_the_boot_and_later(engine: FakeEngine) -> None:
    rank = engine.add(container("head"), "(APIServer pid=1) version 0.25", SLOW, READY)
    log, clock = RankLog("head", rank, bundled_rules()), FakeClock()
    log.read(engine, clock)
    assert failures(log) == ["F89"]
    engine.say(rank.id, JIT)
    log.read(engine, clock)
    assert failures(log) == ["F89"]  # not read again at once
    clock.sleep(10)
    log.read(engine, clock)
    assert set(failures(log)) == {"F89", "F118"}


def test_of_a_long_log_the_middle_is_not_read(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costly, "FIRST_LINES", 3)
    monkeypatch.setattr(costly, "LAST_LINES", 2)
    rank = engine.add(container("head"), "version 0.25", SLOW, READY, JIT, "GET /metrics", BUSY)
    log = RankLog("head", rank, bundled_rules())
    log.read(engine, FakeClock())
    assert failures(log) == ["F89"]
    assert log.busy_at is not None


def test_the_last_line_that_tells_of_tokens_is_remembered(engine: FakeEngine) -> None:
    rank = engine.add(container("head"), BUSY, BUSY, IDLE, IDLE)
    log = RankLog("head", rank, bundled_rules())
    log.read(engine, FakeClock())
    assert log.busy_at == "2026-09-01T10:00:02.000000000Z"


def test_what_became_of_patches_is_kept(engine: FakeEngine) -> None:
    said = ("dspark patch: 1-fixes/odd.sh: | no such place", "dspark patch: 1-fixes/odd.sh: failed (exit 3, optional)")
    rank = engine.add(container("head"), *said, READY)
    log = RankLog("head", rank, bundled_rules())
    log.read(engine, FakeClock())
    assert [str(each) for each in log.patches] == ["optional patch 1-fixes/odd.sh failed (exit 3): no such place"]
