"""Hints as they are printed: `dspark up` in a rehearsal is `dspark rehearse up`; an error names its command."""

from __future__ import annotations

import json
import sys

import pytest

from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main
from dspark_deploy.cli.spoken import spoken_as


@pytest.mark.parametrize(
    ("printed", "read"),
    [
        ("-> `dspark up` starts it", "-> `dspark rehearse up` starts it"),
        ("`dspark logs head`, `dspark down`", "`dspark rehearse logs head`, `dspark rehearse down`"),
        ("`dspark rehearse stop` ends it", "`dspark rehearse stop` ends it"),
        ("`dspark upgrade`, dspark up, `dspark`", "`dspark upgrade`, dspark up, `dspark`"),
    ],
)
def test_a_command_in_backquotes_is_put_right(printed: str, read: str, capsys: pytest.CaptureFixture[str]) -> None:
    with spoken_as("dspark rehearse", ["up", "logs", "down"]):
        sys.stdout.write(printed)
        sys.stderr.write(printed)
    assert capsys.readouterr() == (read, read)


def test_afterwards_nothing_is_changed(capsys: pytest.CaptureFixture[str]) -> None:
    with spoken_as("dspark rehearse", ["up"]):
        pass
    sys.stdout.write("`dspark up`")
    assert capsys.readouterr().out == "`dspark up`"


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("up", "--no-such-option"), "`dspark up --help` lists what can be said"),
        (("bench", "decode", "--runs", "x"), "`dspark bench decode --help` lists what can be said"),
        (("no-such-command",), "`dspark --help` lists what can be said"),
    ],
)
def test_the_remedy_of_a_wrong_command_line_names_the_command(
    words: tuple[str, ...], remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    register_all()
    assert main([*words, "--output", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["remedy"] == remedy


@pytest.mark.parametrize("words", [("-i", "an other.yaml"), ("-ian other.yaml",), ("--inventory=an other.yaml",)])
def test_a_hint_names_the_inventory_that_was_named(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    register_all()
    assert main(["up", *words, "--no-such-option", "--output", "json"]) == 2
    remedy = json.loads(capsys.readouterr().out)["errors"][0]["remedy"]
    assert remedy == "`dspark -i 'an other.yaml' up --help` lists what can be said"
