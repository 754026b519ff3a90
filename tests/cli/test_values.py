"""Durations as people write them."""

from __future__ import annotations

import click
import pytest

from dspark_deploy.cli.values import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("40m", 2400.0), ("1.5h", 5400.0), ("2d", 172800.0), ("7", 7.0), ("250ms", 0.25)],
)
def test_a_duration_becomes_seconds(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5m", "40 minutes", "5M", "m", "1e3s", "nan"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        duration(text)
