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


FULL = "standard output can't be written: No space left on device"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full to write to")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("profiles", [FULL]),
        ("profiles --output json", [FULL]),
        ("profiles no-such --output json", ["no profile is called `no-such`", FULL]),
    ],
    ids=["text", "json", "an-error-in-json"],
)
def test_a_full_disk_behind_standard_output_is_one_clear_error(words: str, told: list[str]) -> None:
    ran = subprocess.run(["sh", "-c", f"{DSPARK} {words} >/dev/full"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    errors = [line.removeprefix("error: ") for line in ran.stderr.splitlines() if line.startswith("error: ")]
    assert errors == told
    assert "Traceback" not in ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full to write to")
def test_where_nothing_can_be_said_the_exit_code_says_it() -> None:
    ran = subprocess.run(["sh", "-c", f"{DSPARK} profiles no-such >/dev/full 2>&1"], check=False)
    assert ran.returncode == 2
