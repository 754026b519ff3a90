"""An env file means what the shell that sources it makes of it, and nothing in it is run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspark_deploy.strict import read_assignments

HOME = "/home/spark"
SHELL = shutil.which("sh") or "/bin/sh"


def read(text: str) -> dict[str, str | None]:
    """The last value of each variable."""
    return {each.name: each.value for each in read_assignments(text, {"HOME": HOME})}


def why(text: str) -> str:
    (each,) = read_assignments(text, {"HOME": HOME})
    assert each.value is None
    return each.why


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=abc", "abc"),
        ("A=", ""),
        ("A=abc#def", "abc#def"),
        ("A=abc #def", "abc"),
        ('A="abc #def" # note', "abc #def"),
        ("A='x \"y\" z'", 'x "y" z'),
        ("A='$HOME \\n'", "$HOME \\n"),
        ("A==rocep1s0f0,roceP2p1s0f0", "=rocep1s0f0,roceP2p1s0f0"),
        ("A=^=mlx5_9", "^=mlx5_9"),
        ("A=a'b'\"c\"d", "abcd"),
        ('A="it\'s \\$5 \\"x\\" \\\\ \\n"', 'it\'s $5 "x" \\ \\n'),
        ("A=a\\ b", "a b"),
        ("A=${HOME}/hf", "/home/spark/hf"),
        ('A="$HOME/hf"', "/home/spark/hf"),
        ("A=~/hf", "/home/spark/hf"),
        ("A='~/hf'", "~/hf"),
        ("A=${NOPE:-fall}", "fall"),
        ("A=${HOME:+set}", "set"),
        ("A=5$", "5$"),
        ("  export A=b", "b"),
        ("A=1;", "1"),
    ],
)
def test_a_value_is_what_the_shell_makes_of_it(line: str, value: str) -> None:
    assert read(line) == {"A": value}
    ran = subprocess.run([SHELL, "-c", f'{line}\nprintf %s "$A"'], env={"HOME": HOME}, capture_output=True, check=True)
    assert ran.stdout.decode() == value


def test_an_earlier_variable_is_filled_in_and_a_later_line_wins() -> None:
    assert read("A=/data\nB=$A/hf\nA=/srv\nC=${A}") == {"A": "/srv", "B": "/data/hf", "C": "/srv"}


def test_several_on_a_line_and_what_only_steers_the_shell() -> None:
    assert read("set -a\nA=1 B=2\nexport C=3 D\nset +a  # done\n") == {"A": "1", "B": "2", "C": "3"}


def test_a_mark_and_the_line_ends_of_windows_are_passed_over() -> None:
    assert read('\ufeffA=10.0.0.2\r\nB="x"\r\n') == {"A": "10.0.0.2", "B": "x"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("A=$(touch /tmp/x)", "nothing is run"),
        ("A=`id`", "nothing is run"),
        ('A="$(id)"', "nothing is run"),
        ("A=$((1+1))", "nothing is run"),
        ("A=$OTHER", "$OTHER"),
        ("A=${HOME%/*}", "only a shell"),
        ("A=$1", "only a shell"),
        ('A="never closed', "not closed"),
        ("A='never closed", "not closed"),
        ("A=C:\\", "backslash"),
        ("A: colon", "not NAME=value"),
        ("A = spaced", "not NAME=value"),
        ("A=one two", "take it for a command"),
        ("A=x|y", "run or redirect"),
        ("A=x > /tmp/y", "take it for a command"),
        ("A+=more", "not NAME=value"),
        ("A=x\ry", "control character"),
    ],
)
def test_what_only_a_running_shell_could_tell_is_a_reason_that_names_the_variable(line: str, reason: str) -> None:
    (each,) = read_assignments(line, {"HOME": HOME})
    assert (each.line, each.name, each.value) == (1, "A", None)
    assert reason in each.why


def test_a_reason_never_repeats_what_may_be_a_key() -> None:
    for line in ('A="sk-secret', "A=sk-public sk-secret", "A=sk-secret$(id)", "sk-secret"):
        assert "sk-" not in why(line)


def test_a_damaged_line_takes_no_other_with_it() -> None:
    assert read('A=1\nB="open\nC=3\nrm -rf /\nD=$B\nE=5') == {
        "A": "1",
        "B": None,
        "C": "3",
        "": None,
        "D": None,
        "E": "5",
    }


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12))
def test_whatever_stands_there_is_either_the_shells_value_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    line = f"A={text}"
    found = read_assignments(line, {"HOME": HOME})
    if any(each.value is None for each in found) or [each.name for each in found] != ["A"]:
        return
    folder = Path(tmp_path_factory.mktemp("shell"))
    script = f'{line}\nprintf "%s" "$A"'
    ran = subprocess.run(
        [SHELL, "-c", script], cwd=folder, env={"HOME": HOME, "PATH": ""}, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout.decode()) == (0, found[0].value)
