from __future__ import annotations

import json

import pytest

from dspark_deploy.errors import StepFailed
from dspark_deploy.remote import program
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.program import COMMAND, Answers, bundled

MARKER = b"dspark-00 "


def framed(document: object) -> bytes:
    return b"\n" + MARKER + json.dumps(document).encode() + b"\n"


def test_documents_are_found_in_whatever_else_is_printed() -> None:
    answers = Answers(MARKER)
    answers.feed(b'Welcome! {"n": 0}\nno line end' + framed({"n": 1}) + b"in between\r\n" + framed({"n": 2}) + b"bye")
    assert (answers.next(), answers.next(), answers.next()) == ({"n": 1}, {"n": 2}, None)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_documents_may_come_in_any_pieces(size: int) -> None:
    answers = Answers(MARKER)
    data = b"noise" + framed({"text": "a\nb ☃"}) + b"more"
    found = []
    for start in range(0, len(data), size):
        answers.feed(data[start : start + size])
        found.append(answers.next())
    assert [document for document in found if document] == [{"text": "a\nb ☃"}]


def test_noise_is_not_kept() -> None:
    answers = Answers(MARKER)
    for _ in range(100):
        answers.feed(b"x" * 10000)
        assert answers.next() is None
    assert len(answers._buffer) <= len(MARKER)


def test_the_command_a_shell_sees_holds_no_data() -> None:
    assert COMMAND.count("'") == 2  # one pair of single quotes: alike in sh, bash, zsh, fish and csh
    assert not set("\\!\n") & set(COMMAND)


def test_a_bundle_brings_the_modules_that_a_program_imports_once_and_first() -> None:
    text = bundled("probe").decode()
    places = [text.index(f"_load('dspark_deploy.remote.programs.{name}'") for name in ("_frame", "_docker", "_state")]
    assert places == sorted(places)
    assert text.count("_load('dspark_deploy.remote.programs._frame'") == 1
    length, rest = text.split("\n", 1)
    assert int(length) == len(rest.encode())


def test_a_program_that_ends_without_an_answer_is_quoted(local: LocalHost) -> None:
    with pytest.raises(StepFailed, match="`run` ended without an answer") as failed:
        local.call("run", {"argv": ["true"]}, timeout_s=5)
    assert "KeyError" in failed.value.why


def test_a_program_that_does_not_answer_in_time_is_an_error(local: LocalHost) -> None:
    with pytest.raises(StepFailed, match=r"head \(this machine\): no answer within 0.1 s to `run`"):
        local.call("run", {"argv": ["sleep", "60"], "cwd": None, "timeout_s": 60}, timeout_s=0.1)


def test_a_missing_python_is_named(local: LocalHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "open_program", lambda: local._open(("sh", "-c", "exec no-python3; exit 127")))
    with pytest.raises(StepFailed, match="python3 is not there") as failed:
        local.call("run", {}, timeout_s=5)
    assert "3.10" in failed.value.remedy


def test_a_large_payload_for_a_program_that_has_ended_is_no_hang(
    local: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "bundled", lambda _: b"20\nraise SystemExit(9)\n")
    with pytest.raises(StepFailed, match="ended without an answer"):
        local.call("run", {}, timeout_s=5, payload=b"x" * 10_000_000)
