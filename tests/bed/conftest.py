"""The bed for every test in this folder: brought up once a session, brought back to health before each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .bed import Bed
from .session import BedSession
from .stock import STANDIN

HERE = Path(__file__).parent
SESSION = BedSession(lambda: STANDIN)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("bed")


def pytest_runtest_setup() -> None:
    """No test without a bed."""
    SESSION.require()


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """Both hosts, up for the whole session."""
    yield SESSION.bed
    SESSION.bed.close()


@pytest.fixture(autouse=True)
def _healthy_bed(bed: Bed) -> None:
    bed.reset()
