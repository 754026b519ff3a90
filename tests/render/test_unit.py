from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dspark_deploy.errors import ConfigError
from dspark_deploy.render.unit import Unit, unit_file


def unit(tmp_path: Path, *words: str) -> Unit:
    argv = (sys.executable, "-m", "dspark_deploy", "supervise", *words)
    return Unit(pair="spark-pair", user="root", directory=tmp_path, argv=argv)


def test_a_unit_runs_the_command_and_comes_back_but_not_after_it_gave_up(tmp_path: Path) -> None:
    lines = unit_file(unit(tmp_path, "--inventory", "/srv/inventory.yaml"), tool="1.2.3").splitlines()
    command = f"{sys.executable} -m dspark_deploy supervise --inventory /srv/inventory.yaml"
    for line in (
        f"ExecStart={command}",
        f"WorkingDirectory={tmp_path}",
        "User=root",
        "Restart=on-failure",
        "RestartPreventExitStatus=2 8",
        "SuccessExitStatus=130",
        "After=network-online.target docker.service",
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/srv/my pair.yaml", '"/srv/my pair.yaml"'),
        ('a"b', '"a\\"b"'),
        ("100%", "100%%"),
        ("$HOME", "$$HOME"),
        ("a;b", '"a;b"'),
        ("", '""'),
    ],
)
def test_words_are_written_as_systemd_reads_them(tmp_path: Path, word: str, written: str) -> None:
    (line,) = [each for each in unit_file(unit(tmp_path, word), tool="1").splitlines() if each.startswith("ExecStart")]
    assert line.endswith(f" supervise {written}")


def test_a_word_with_a_line_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        unit_file(unit(tmp_path, "a\nExecStart=/bin/false"), tool="1")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine (apt: systemd)")
def test_systemd_finds_no_fault_in_a_unit(tmp_path: Path) -> None:
    path = tmp_path / "dspark-spark-pair.service"
    path.write_text(unit_file(unit(tmp_path, "--inventory", "/srv/my 100% $pair/inventory.yaml"), tool="1"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path], check=False, capture_output=True, text=True, timeout=30
    )
    about = [line for line in verified.stderr.splitlines() if "dspark-spark-pair" in line or str(path) in line]
    assert (about, verified.returncode) == ([], 0), verified.stderr
