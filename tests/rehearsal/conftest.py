"""One rehearsal for the tests of this folder that leave it as they found it, and a place for those that do not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from .pair import RehearsedPair, place


@pytest.fixture(scope="session", name="running")
def _running() -> Iterator[RehearsedPair]:
    pair = RehearsedPair(place())
    pair.start()
    yield pair
    pair.stop()
    shutil.rmtree(pair.state)


@pytest.fixture
def rehearsed(running: RehearsedPair) -> RehearsedPair:
    """A pair that is up, healthy and empty."""
    running.reset()
    return running


@pytest.fixture
def serving(running: RehearsedPair) -> RehearsedPair:
    """A pair that is healthy and serves agent-1m, for tests that leave its releases and its history as they are."""
    running.serve()
    return running


@pytest.fixture
def unused() -> Iterator[RehearsedPair]:
    """A place where no pair is up yet; whatever comes up there is ended."""
    pair = RehearsedPair(place())
    yield pair
    pair.stop()
    shutil.rmtree(pair.state)
