"""`dspark init` from the command line: what it takes, how it ends, and one JSON object whatever happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main
from dspark_deploy.errors import ExitCode

Run = Callable[..., tuple[int, str]]


@pytest.fixture(name="run")
def _run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """One command line in an empty folder: its exit code and its standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    register_all()

    def run(*words: str) -> tuple[int, str]:
        code = main(["init", *words])
        return code, capsys.readouterr().out

    return run


def result(output: str) -> Any:
    return json.loads(output)["result"]


@pytest.mark.parametrize("words", [(), ("spark-a",), ("a", "b", "c"), ("--from-env", "x", "a")])
def test_it_takes_both_hosts_or_an_env_file(run: Run, words: tuple[str, ...]) -> None:
    assert run(*words)[0] == ExitCode.USAGE


def test_an_env_file_becomes_two_files_and_a_line_for_each_of_its_own(run: Run, tmp_path: Path) -> None:
    (tmp_path / "e").write_text("WORKER_HOST=b\nMAX_NUM_SEQS=5\nHEADLESS=\nfoo\n")
    code, output = run("--from-env", "e", "--output", "json")
    assert code == ExitCode.OK
    assert [(each["line"], each["name"], each["fate"]) for each in result(output)["keys"]] == [
        (1, "WORKER_HOST", "taken"),
        (2, "MAX_NUM_SEQS", "taken"),
        (3, "HEADLESS", "derived"),
        (4, "", "left-out"),
    ]
    assert list(result(output)["files"]) == [f"{tmp_path}/profiles/spark-pair-env.yaml", f"{tmp_path}/inventory.yaml"]
    assert all(Path(path).read_text() == text for path, text in result(output)["files"].items())


def test_the_text_says_for_each_line_what_became_of_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "e").write_text("WORKER_HOST=b\nDSPARK_API_KEYS=sk-one sk-two\nfoo\n")
    _, output = run("--from-env", "e")
    lines = output.splitlines()
    assert lines[0].split() == ["->", "line", "1", "WORKER_HOST", "worker.host"]
    assert lines[1].startswith("x   line 2  DSPARK_API_KEYS")
    assert lines[2].startswith("x   line 3  ?")
    assert f"wrote {tmp_path}/inventory.yaml" in lines
    assert "sk-" not in output


def test_a_dry_run_prints_what_it_would_write(run: Run, tmp_path: Path) -> None:
    (tmp_path / "e").write_text("WORKER_HOST=b\n")
    code, output = run("--from-env", "e", "-n")
    assert code == ExitCode.OK
    assert "  host: b  # WORKER_HOST, line 1" in output
    assert not (tmp_path / "inventory.yaml").exists()


def test_an_inventory_that_is_there_is_exit_2_and_json_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text("")
    (tmp_path / "e").write_text("WORKER_HOST=b\n")
    code, output = run("--from-env", "e", "--output", "json")
    assert code == ExitCode.USAGE
    assert json.loads(output)["errors"][0]["remedy"].startswith("say --force")
