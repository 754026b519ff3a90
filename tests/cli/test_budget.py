"""`dspark budget` and `dspark advise` as typed: exit codes, the keys that scripts rely on, the lines for people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.capacity.picture import FORMATS
from dspark_deploy.cli.budget_text import spell_seconds
from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main
from dspark_deploy.cli.values import tokens, tokens_or_none

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Types a command line in a folder where nothing is. Gives its exit code, output and narration."""
    register_all()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DSPARK_OUTPUT", "HF_HOME", "HF_HUB_CACHE", "DSPARK_PROFILE", "DSPARK_INVENTORY"):
        monkeypatch.delenv(name, raising=False)

    def typed(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return typed


def result(run: Run, *words: str) -> dict[str, Any]:
    code, out, _ = run(*words, "--output", "json")
    document = json.loads(out)
    assert (code, document["ok"], document["command"]) == (0, True, words[0])
    found: dict[str, Any] = document["result"]
    return found


def test_the_published_example_has_the_keys_that_others_rely_on(run: Run) -> None:
    found = result(run, "budget", "--prompt-tokens", "125272", "-p", "agent-1m")
    measured, speed = found["measured"], found["interpolated"]
    assert {key: measured[key] for key in ("prompt_tokens", "live_tokens_total", "kv_pool_tokens")} == {
        "prompt_tokens": 125_272,
        "live_tokens_total": 127_320,
        "kv_pool_tokens": 2_493_464,
    }
    assert round(measured["kv_pool_used_pct"], 1) == 5.1
    assert (measured["batched_tokens_needed"], measured["max_num_batched_tokens"]) == (125_272, 8192)
    assert {key: round(speed[key], 1) for key in ("ttft_s", "prefill_tps", "decode_tps", "aggregate_tps")} == {
        "ttft_s": 75.6,
        "prefill_tps": 1656.7,
        "decode_tps": 65.2,
        "aggregate_tps": 6.1,
    }
    assert speed["source"].startswith("sweep-2026-08-01, rows 32768 x 1 and 131072 x 1")
    assert speed["note"]


def test_where_the_data_gives_no_number_interpolated_is_null(run: Run) -> None:
    found = result(run, "budget", "--prompt-tokens", "131073", "-c", "2")
    assert found["interpolated"] is None
    assert "up to 131072 tokens" in found["no_number"]


def test_the_published_example_reads_as_it_was_printed(run: Run) -> None:
    code, out, _ = run("budget", "--prompt-tokens", "125272")
    assert code == 0
    for line in (
        "KV pool    5.11 % of 2493464 tokens",
        "19 such sessions fit it at once (19.58)",
        "TTFT       1 min 16 s",
        "prefill    1657 tok/s",
        "decode     65.2 tok/s a stream",
        "aggregate  6.1 tok/s",
        "-> fits the KV pool: 5.11 % of 2493464 tokens",
    ):
        assert line in out


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--mix", "6x50k", "--prompt-tokens", "1"),
        ("--mix", "6x50k", "-c", "2"),
        ("--mix", "6"),
        ("--prompt-tokens", "0"),
        ("--prompt-tokens", "many"),
        ("--prompt-tokens", "1", "--kv-pool", "0"),
        ("--prompt-tokens", "1", "-c", "0"),
        ("--prompt-tokens", "1", "--plot", "x.gif"),
        ("--prompt-tokens", "1", "--sweep", "none"),
        ("--prompt-tokens", "1", "-p", "none"),
        ("--prompt-tokens", "1", "--set", "nonsense=1"),
        ("--scan", "nowhere"),
        ("--text", "nowhere"),
        ("--scan", ".", "--tokenizer", "nowhere"),
    ],
)
def test_a_mistake_is_exit_2_without_a_traceback(run: Run, words: tuple[str, ...]) -> None:
    code, out, err = run("budget", *words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err


def test_a_tree_is_scanned_and_says_what_it_left_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x" * 40)
    (tmp_path / "b.png").write_text("x")
    (tmp_path / "odd\udcff.PY").write_text("x" * 4)
    found = result(run, "budget", "--scan", ".", "--ext", "*.py,.png", "--chars-per-token", "2")
    assert (found["text"]["tokens"], found["text"]["scan"]["files"]) == (22, 2)
    assert found["text"]["scan"]["skipped"] == {"binary files": 1}
    code, out, _ = run("budget", "--scan", str(tmp_path))
    assert code == 0
    assert "counted by an estimate" in out
    assert "skipped    binary files (1)" in out


def test_a_text_is_read_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("你好世界")
    assert result(run, "budget", "--text", "prompt.txt")["measured"]["prompt_tokens"] == 4


@pytest.mark.parametrize(("ending", "mark"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_a_picture_is_written_in_the_format_of_its_name(run: Run, tmp_path: Path, ending: str, mark: bytes) -> None:
    assert ending in FORMATS
    code, out, _ = run("budget", "--prompt-tokens", "20k", "-c", "6", "--plot", f"picture.{ending}")
    assert code == 0
    picture = (tmp_path / f"picture.{ending}").read_bytes()
    assert picture.startswith(mark)
    assert len(picture) > 1000
    assert f"drawn      picture.{ending}" in out


def test_a_picture_that_can_not_be_written_is_an_error(run: Run) -> None:
    code, _, err = run("budget", "--prompt-tokens", "20k", "--plot", "nowhere/picture.svg")
    assert code == 2
    assert "can't be written" in err


def test_a_shape_that_up_refuses_warns(run: Run) -> None:
    code, _, err = run("budget", "--prompt-tokens", "1k", "--set", "max_num_seqs=16")
    assert code == 0
    assert "[WARN] `up` refuses this shape" in re.sub(r"\x1b\[[0-9]*m", "", err)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.63, "0.63 s"), (59.99, "59.99 s"), (75.6441, "1 min 16 s"), (1184.1, "19 min 44 s"), (3720, "1 h 02 min")],
)
def test_seconds_are_spelled_for_people(seconds: float, said: str) -> None:
    assert spell_seconds(seconds) == said


def test_a_count_may_be_none_only_where_that_means_something() -> None:
    assert (tokens("1k"), tokens_or_none("0")) == (1000, 0)


def test_advice_names_the_profile_and_the_command(run: Run) -> None:
    code, out, _ = run("advise", "--sessions", "12", "--typical", "40k", "--longest", "150k", "--ttft", "30s")
    assert code == 0
    assert out.startswith("1. concurrent-200k: suits (200000 tokens, 16 sequences, family stage-c)\n")
    assert "dspark up -p agent-1m --set max_num_seqs=10" in out
    assert "more with --all)" in out


def test_advice_is_there_for_scripts_too(run: Run) -> None:
    found = result(run, "advise", "--sessions", "1", "--typical", "2M", "--turns-per-hour", "1")
    assert found["wanted"]["longest"] == 2_000_000
    assert found["advice"]["otherwise"][0].startswith("no profile serves")
    assert all(each["change"] == "" for each in found["advice"]["ranked"])


@pytest.mark.parametrize(
    "words",
    [
        ("--typical", "1k"),
        ("--sessions", "1"),
        ("--sessions", "0", "--typical", "1k"),
        ("--sessions", "1", "--typical", "2k", "--longest", "1k"),
        ("--sessions", "1", "--typical", "1k", "-p", "none"),
    ],
)
def test_a_mistake_in_a_description_is_exit_2(run: Run, words: tuple[str, ...]) -> None:
    code, out, err = run("advise", *words)
    assert (code, out) == (2, "")
    assert err
