"""The bed with real vLLM on both nodes, and what is kept of a test that fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pluggy
import pytest

from tests.bed.bed import Bed
from tests.bed.packages import install_library
from tests.bed.session import BedSession
from tests.bed.stock import Stock

from . import image
from .pair import Pair

HERE = Path(__file__).parent


def _stock() -> Stock:
    install_library(image.NUMA, "libnuma1")
    return image.stock()


SESSION = BedSession(_stock)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, and keep them on one worker and in order: they share boots."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("real")
            item.add_marker(pytest.mark.xdist_group("bed"))


def pytest_runtest_setup() -> None:
    """No test without a bed."""
    SESSION.require()


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """Both hosts, up for the whole session."""
    yield SESSION.bed
    SESSION.bed.close()


@pytest.fixture(name="pair", scope="session")
def _pair(bed: Bed) -> Pair:
    """All tests share what they start: a boot takes a minute."""
    return Pair(bed)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Keep a failed test's commands with their answers, and both ranks' logs."""
    report = (yield).get_result()
    pair = getattr(item, "funcargs", {}).get("pair")
    if isinstance(pair, Pair) and report.when == "call":
        if report.failed:
            report.sections.append(("kept in", str(pair.keep(item.name))))
        pair.commands.clear()
