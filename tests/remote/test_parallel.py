"""Both nodes at once, and two different things at once."""

from __future__ import annotations

import threading

import pytest

from dspark_deploy.remote.clock import SystemClock
from dspark_deploy.remote.parallel import attempt, beside, together


def fail() -> int:
    raise ValueError("no")


def test_two_different_things_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=10)
    assert beside(lambda: both.wait() >= 0, lambda: str(both.wait() >= 0), SystemClock()) == (True, "True")


def test_an_error_of_either_is_raised_once_both_have_ended() -> None:
    ended: list[str] = []
    with pytest.raises(ValueError, match="no"):
        beside(fail, lambda: ended.append("second"), SystemClock())
    with pytest.raises(ValueError, match="no"):
        beside(lambda: ended.append("first"), fail, SystemClock())
    assert ended == ["second", "first"]


def test_an_attempt_keeps_an_error_where_a_result_would_be() -> None:
    outcomes = attempt({"head": lambda: 1, "worker": fail}, SystemClock())
    assert outcomes["head"] == 1
    assert isinstance(outcomes["worker"], ValueError)
    with pytest.raises(ValueError, match="no"):
        together({"head": lambda: 1, "worker": fail}, SystemClock())
