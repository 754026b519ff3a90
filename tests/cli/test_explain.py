"""`dspark explain`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dspark_deploy.cli.explain import explain
from dspark_deploy.errors import ConfigError
from tests.boot.corpus import BOOTS, expand

CASE = expand(BOOTS / "first" / "memory-short-on-worker.yaml")
UNKNOWN = b"(Worker_TP0 pid=1) ERROR 07-18 13:29:30 [e.py:1] WorkerProc failed to start.\nKeyError: 'layers.43.scale'\n"


def run(*arguments: object, piped: bytes | None = None) -> Result:
    """One command line. The command's return value is its exit code."""
    return CliRunner().invoke(explain, [str(each) for each in arguments], input=piped, standalone_mode=False)


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """The head's and the worker's log of a boot for which the worker had too little memory."""
    paths = []
    for node, log in CASE.logs.items():
        path = tmp_path / f"{node}.log"
        path.write_bytes(log)
        paths.append(path)
    return paths


def test_the_answer_stands_first_with_its_line_and_remedy(logs: list[Path]) -> None:
    ran = run(*logs)
    first, place, line, remedy, echo, *_ = ran.stdout.splitlines()
    assert ran.return_value == 0
    assert first == "F29: the boot failed"
    assert place.startswith("  on the worker, in phase load, line 1261: 104.9 of 121.63 GiB are free")
    assert line.startswith("  | (Worker pid=174) ERROR 07-18 13:29:42")
    assert remedy == "  -> free memory there, or set gpu_memory_utilization to 0.86 or less"
    assert echo == "an echo of it: the head lost the other rank"


def test_json_holds_the_same(logs: list[Path]) -> None:
    ran = run("--output", "json", *logs)
    document = json.loads(ran.stdout)
    assert document["command"] == "explain"
    assert (document["ok"], document["exit_code"], ran.return_value) == (True, 0, 0)
    answer = document["result"]["answer"]
    assert (answer["failure"], answer["node"], answer["severity"]) == ("F29", "worker", "fatal")
    assert document["result"]["failures"][0] == answer
    assert [rank["node"] for rank in document["result"]["ranks"]] == ["head", "worker"]


def test_a_log_is_taken_from_a_pipe() -> None:
    log = CASE.logs["worker"]
    assert run(piped=log).stdout.startswith("F29: the boot failed")
    assert run("-", piped=log).stdout.startswith("F29: the boot failed")


def test_a_healthy_boot_is_said_to_be_healthy() -> None:
    ran = run(BOOTS / "real" / "v4-head.log")
    assert ran.return_value == 0
    assert ran.stdout.startswith("the boot is healthy: it came up\n[WARN] F89 on the head")
    assert "KV pool 52,447 tokens, 25.61x concurrency" in ran.stdout


def test_an_unknown_failure_shows_what_the_log_states_and_is_exit_8() -> None:
    ran = run(piped=UNKNOWN)
    assert ran.return_value == 8
    assert "KeyError: 'layers.43.scale'" in ran.stdout


def test_what_is_no_log_of_a_rank_is_exit_8() -> None:
    ran = run(piped=b"hello\n")
    assert ran.return_value == 8
    assert ran.stdout.startswith("no line of this is known")


@pytest.mark.parametrize("arguments", [("absent.log",), ("a", "b", "c"), ("-", "-")])
def test_logs_that_can_not_be_meant_are_a_configuration_error(arguments: tuple[str, ...]) -> None:
    assert isinstance(run(*arguments).exception, ConfigError)


def test_a_folder_with_both_logs_is_as_good_as_the_logs(logs: list[Path]) -> None:
    assert run(logs[0].parent).stdout == run(*logs).stdout


def test_what_a_run_of_this_machine_kept_is_explained_by_its_id(
    logs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = run(*logs).stdout
    folder = tmp_path / "dspark/spark-pair/runs/20260901T101530-a1b2c3"
    folder.mkdir(parents=True)
    for log in logs:
        log.rename(folder / log.name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run("20260901T10").stdout == run("last").stdout == told


@pytest.mark.parametrize("named", ["a-folder", "20260901T101530-a1b2c3"])
def test_a_folder_without_logs_and_a_run_that_is_not_here_are_a_configuration_error(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "a-folder").mkdir()
    assert isinstance(run(named).exception, ConfigError)
