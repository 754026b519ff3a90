"""How far hashing is, where there is no terminal: a line now and then, and one at the end."""

from __future__ import annotations

import pytest

from dspark_deploy.cli.hashing import Bars
from dspark_deploy.facts.snapshot import Progress

GIB = 1 << 30


def test_each_node_is_told_at_the_start_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars() as bars:
        for done in (1, 2, 3, 4):
            bars.tell("head", Progress(4 * GIB, 1 * GIB, done * GIB))
        bars.tell("worker", Progress(4 * GIB, 4 * GIB, 4 * GIB))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "head: 1.00 GiB of 4.00 GiB hashed",
        "head: 4.00 GiB of 4.00 GiB hashed",
        "worker: 4.00 GiB of 4.00 GiB hashed",
    ]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars(quiet=True) as bars:
        bars.tell("head", Progress(4 * GIB, 0, 4 * GIB))
    assert capsys.readouterr().err == ""
