"""Where records lie on the controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.flow.record import state_home

HOME = Path("/home/me")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "/home/me/.local/state"),
        ({"XDG_STATE_HOME": ""}, "/home/me/.local/state"),
        ({"XDG_STATE_HOME": "here"}, "/home/me/.local/state"),
        ({"XDG_STATE_HOME": "/srv/state"}, "/srv/state"),
    ],
)
def test_the_variable_counts_where_it_is_an_absolute_path(given: dict[str, str], found: str) -> None:
    assert state_home(given, HOME) == Path(found)
