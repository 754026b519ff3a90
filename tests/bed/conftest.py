"""The bed for every test in this folder: brought up once a session, brought back to health before each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .bed import Bed
from .packages import SYSTEM_PATH, BedUnavailable, distribution, install_packages

HERE = Path(__file__).parent
HOW = "run the tests as root on Debian or Ubuntu to have them (they install what is missing and undo what they start)"


def pytest_configure(config: pytest.Config) -> None:
    """Know xdist's marker, also where xdist is not loaded."""
    config.addinivalue_line("markers", "xdist_group(name): tests that one worker has to run")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, and keep them on one worker: there is one bed a machine."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("bed")
            item.add_marker(pytest.mark.xdist_group("bed"))


def why_not() -> str | None:
    """Why there can be no bed here, or None."""
    if os.environ.get("DSPARK_BED", "").lower() in {"0", "no", "off"}:
        return "DSPARK_BED turns it off"
    if not distribution().is_supported:
        return "this is neither Debian nor Ubuntu"
    if os.geteuid() != 0:
        return "not root"
    if shutil.which("unshare", path=SYSTEM_PATH) is None:
        return "no unshare"
    return None


class _Opened:
    """The session's bed, or the reason why there is none: found out once, by the first test that wants it."""

    bed: Bed | None = None
    reason: str | None = None


def _open() -> None:
    if _Opened.bed or _Opened.reason:
        return
    _Opened.reason = why_not()
    if _Opened.reason is None:
        try:
            install_packages()
            _Opened.bed = Bed.start()
        except BedUnavailable as error:
            _Opened.reason = str(error)


def pytest_runtest_setup() -> None:
    """Skip where there is no bed; with DSPARK_REQUIRE_BED set, fail.

    Here and not in a fixture: all skips come from one place then, and pytest shows them as one line.
    """
    _open()
    if _Opened.reason:
        line = f"no two-host bed: {_Opened.reason}; {HOW}"
        if os.environ.get("DSPARK_REQUIRE_BED", "0") not in {"", "0"}:
            pytest.fail(line, pytrace=False)
        pytest.skip(line)


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """Both hosts, up for the whole session."""
    assert _Opened.bed
    yield _Opened.bed
    _Opened.bed.close()


@pytest.fixture(autouse=True)
def _healthy_bed(bed: Bed) -> None:
    bed.reset()
