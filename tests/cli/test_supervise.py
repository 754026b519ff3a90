from __future__ import annotations

import getpass
import json
import sys
from pathlib import Path

import pytest

from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main

INVENTORY = "name: spark-pair\nhead: {host: spark-head}\nworker: {host: spark-worker}\n"


@pytest.fixture(name="inventory")
def _inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register_all()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "inventory.yaml"
    path.write_text(INVENTORY)
    return path


def test_a_unit_runs_this_command_line_and_asks_no_node(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["supervise", "--print-unit", "--backoff", "2m", "--limit", "5", "--turn", "500ms", "--output", "json"]
    assert main(words) == 0
    unit = capsys.readouterr().out
    options = f"--inventory {inventory} --output json --limit 5 --backoff 120s --turn 0.5s"
    assert f"ExecStart={sys.executable} -m dspark_deploy supervise {options}\n" in unit
    assert f"User={getpass.getuser()}\n" in unit
    assert f"WorkingDirectory={inventory.parent}\n" in unit
    assert "spark-pair" in unit


@pytest.mark.usefixtures("inventory")
@pytest.mark.parametrize(
    "words", [("--limit", "0"), ("--backoff", "soon"), ("--wedge-after", "0s"), ("--print-unit", "-i", "none.yaml")]
)
def test_what_can_not_be_meant_is_exit_2(words: tuple[str, ...]) -> None:
    assert main(["supervise", *words]) == 2


def test_an_error_in_json_is_one_line_among_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    register_all()
    assert main(["supervise", "-i", "none.yaml", "--output", "json"]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["exit_code"] == 2
