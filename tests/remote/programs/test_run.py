from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dspark_deploy.errors import StepFailed
from dspark_deploy.remote.local import LocalHost


def test_words_arrive_byte_for_byte(local: LocalHost) -> None:
    words = ["a b", "$HOME `id`", 'it\'s "quoted"', "\\", '{"k":1}', "é☃", "", "*", "line\nbreak"]
    result = local.run(["printf", "%s\\0", *words], timeout_s=5)
    assert result.stdout.split("\0")[:-1] == words


def test_exit_code_and_both_streams_are_told(local: LocalHost) -> None:
    result = local.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=5)
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")


def test_a_command_ended_by_a_signal_has_its_negative_number(local: LocalHost) -> None:
    assert local.run(["sh", "-c", "kill -9 $$"], timeout_s=5).returncode == -9


def test_a_command_that_is_not_there_names_the_path_that_was_searched(local: LocalHost) -> None:
    result = local.run(["no-such-command"], timeout_s=5)
    assert result.returncode == 127
    assert "no-such-command: not found on PATH" in result.stderr


def test_a_relative_folder_is_taken_from_home(local: LocalHost, home: Path) -> None:
    (home / "my models").mkdir()
    assert local.run(["pwd"], timeout_s=5, cwd="my models").stdout == f"{home}/my models\n"
    missing = local.run(["pwd"], timeout_s=5, cwd="nowhere")
    assert missing.returncode != 0
    assert f"{home}/nowhere: No such file or directory" in missing.stderr


def test_nothing_of_the_environment_chooses_another_engine(local: LocalHost, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "COMPOSE_PROJECT_NAME", "BUILDX_BUILDER"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("KEPT", "yes")
    printed = local.run(["env"], timeout_s=5).stdout.splitlines()
    assert not [line for line in printed if line.startswith(("DOCKER_", "COMPOSE_", "BUILDX_"))]
    assert {"LC_ALL=C.UTF-8", "KEPT=yes"} <= set(printed)


def test_the_usual_places_are_searched_where_the_shell_s_path_lacks_them(
    local: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert local.run(["sh", "-c", "echo $PATH"], timeout_s=5).stdout.startswith("/nowhere:/usr/local/bin:/usr/bin:/bin")


def test_a_command_past_its_limit_is_ended_and_quoted(local: LocalHost) -> None:
    began = time.monotonic()
    with pytest.raises(StepFailed, match=r"did not end within 0\.2 s") as failed:
        local.run(["sh", "-c", "echo so far; exec sleep 60"], timeout_s=0.2)
    assert time.monotonic() - began < 2
    assert failed.value.why == "so far"
    assert failed.value.node == "head"


def test_a_child_that_keeps_the_output_open_does_not_hold_up_the_answer(local: LocalHost) -> None:
    began = time.monotonic()
    result = local.run(["sh", "-c", "sleep 60 & echo started"], timeout_s=30)
    assert result.stdout == "started\n"
    assert time.monotonic() - began < 5


def test_long_output_keeps_its_end_and_says_what_is_missing(local: LocalHost) -> None:
    result = local.run(["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo end"], timeout_s=20)
    assert result.stdout.endswith("xend\n")
    assert result.stdout.startswith("[805700 bytes left out]\n")


def test_everything_ends_with_its_session(local: LocalHost, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    script = f"exec 3>{alive}; echo >&3; sleep 60 & sleep 60"
    session = local.start("run", {"argv": ["sh", "-c", script], "cwd": None, "timeout_s": 60}, timeout_s=5)
    with alive.open("rb") as held_open:
        assert held_open.readline() == b"\n"
        session.close()
        assert held_open.read() == b""  # returns once the last process that holds it is gone
