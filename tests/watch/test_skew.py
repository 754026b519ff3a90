"""How far a node's clock is off."""

from __future__ import annotations

import pytest

from dspark_deploy.watch.skew import measure_skew
from tests.fakes import FakeEngine


@pytest.mark.parametrize("skew_s", [-3600.0, 0.0, 2.5])
def test_a_skew_is_measured_both_ways(skew_s: float) -> None:
    engine = FakeEngine("worker")
    engine.skew_s = skew_s
    assert measure_skew(engine) == pytest.approx(skew_s, abs=0.2)
