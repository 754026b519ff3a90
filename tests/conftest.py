"""What holds for every test, whoever starts pytest and however."""

from __future__ import annotations

import gc
import os
import sys

# Some hundred processes of the tool are started, and two workers and two runs collect the same tests. Where the
# environment says so, as that of many containers does, each would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# What is loaded until all tests are collected stays, and looking for garbage in it took a tenth of the tests' own time.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on, look through what is new."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()
