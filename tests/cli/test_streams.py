"""What a shell may do to the three streams must not change what a command does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DSPARK = Path(sys.executable).with_name("dspark")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_a_closed_stream_is_no_fault(closed: str) -> None:
    ran = subprocess.run(["sh", "-c", f"{DSPARK} profiles {closed}"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_reader_that_leaves_is_no_fault() -> None:
    script = f"{{ {DSPARK} profiles agent-1m; echo $? >&2; }} | true"
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert ran.stderr.strip() == "0"
