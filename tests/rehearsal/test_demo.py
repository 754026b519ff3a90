"""README's first command, and what README says that it prints."""

from __future__ import annotations

import re
from pathlib import Path

from ..bed.run import run
from .pair import FAST, RehearsedPair

CHECKOUT = Path(__file__).parents[2]
BEGIN, END = "<!-- recorded: ./demo -->\n```text\n", "```\n<!-- end of the record -->"
# What differs from run to run.
CHANGES = (
    (r"\(\d+\.\d s\)", "(0.0 s)"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|\+00:00)", "TIME"),
    (r"release( +)[0-9a-f]{12}", r"release\g<1>ID"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"process \d+", "process PID"),
    (r"time scale \d+", "time scale X"),
    (r"\d+ bytes", "N bytes"),
    (r"== installing into .venv\n", ""),  # of a first run, or after a change of what is needed
)


def normal(text: str) -> list[str]:
    """The lines with all of CHANGES made; how a line is wrapped does not count."""
    for pattern, word in CHANGES:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.splitlines()]


def test_the_demo_prints_what_the_readme_says(unused: RehearsedPair) -> None:
    command = ["sh", "-c", f'exec "{CHECKOUT / "demo"}" --time-scale {FAST} 2>&1']
    ran = run(command, env=unused.environment, timeout=60).check()
    recorded = (CHECKOUT / "README.md").read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert normal(recorded) == normal(ran.stdout.replace(f" --time-scale {FAST}", ""))
