"""The bed of a test session, found out once, by the first test that wants it. Each worker of a run has its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from .bed import Bed
from .packages import SYSTEM_PATH, BedUnavailable, distribution, install_packages
from .stock import Stock

HOW = "run the tests as root on Debian or Ubuntu to have them (they install what is missing and undo what they start)"


WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")  # as pytest-xdist numbers them


class BedSession:
    """A bed of one kind, or the reason why there is none."""

    def __init__(self, stock: Callable[[], Stock]) -> None:
        self._stock = stock
        self._bed: Bed | None = None
        self._reason: str | None = None

    @property
    def bed(self) -> Bed:
        """The open bed."""
        assert self._bed
        return self._bed

    def require(self) -> None:
        """Open the bed. Skip the test where there is none; with DSPARK_REQUIRE_BED set, fail.

        From a hook and not from a fixture: all skips come from one place then, and pytest shows them as one line.
        """
        self._open()
        if self._reason:
            line = f"no two-host bed: {self._reason}; {HOW}"
            if os.environ.get("DSPARK_REQUIRE_BED", "0") not in {"", "0"}:
                pytest.fail(line, pytrace=False)
            pytest.skip(line)

    def _open(self) -> None:
        if self._bed or self._reason:
            return
        self._reason = why_not()
        if self._reason is None:
            try:
                install_packages()
                self._bed = Bed.start(self._stock(), int(WORKER.removeprefix("gw")))
            except BedUnavailable as error:
                self._reason = str(error)


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
