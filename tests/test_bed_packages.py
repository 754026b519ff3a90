"""Where the bed takes the compose plugin from: the machine's own archive, another suite. Needs no bed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.bed import packages
from tests.bed.packages import BedUnavailable, Distribution, compose_binary

BOOKWORM = Distribution("debian", "", "bookworm")
NOBLE = Distribution("ubuntu", "debian", "noble")
STANZAS = """\
# a comment that names
# URIs: http://not.this/one
Types: deb
URIs: http://archive.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://security.test/debian
Suites: bookworm-security
Components: main

Types: deb-src
URIs: http://sources.test/debian
Suites: bookworm
"""


@pytest.fixture
def apt(tmp_path: Path) -> Path:
    """An empty /etc/apt."""
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("release", "file", "text", "line"),
    [
        (
            BOOKWORM,
            "sources.list.d/debian.sources",
            STANZAS,
            "deb [signed-by=/usr/share/keyrings/archive.gpg] http://archive.test/debian trixie main",
        ),
        (
            BOOKWORM,
            "sources.list",
            "# deb http://old/ x\ndeb http://a.test/debian bookworm main contrib\n",
            "deb http://a.test/debian trixie main",
        ),
        (
            BOOKWORM,
            "sources.list.d/x.list",
            "deb [arch=amd64 signed-by=/k.gpg] http://b.test/d bookworm main\n",
            "deb [signed-by=/k.gpg] http://b.test/d trixie main",
        ),
        (NOBLE, "sources.list", "deb http://u.test/ubuntu noble main\n", "deb http://u.test/ubuntu trixie universe"),
    ],
)
def test_the_source_is_the_machines_own_archive(
    apt: Path, monkeypatch: pytest.MonkeyPatch, release: Distribution, file: str, text: str, line: str
) -> None:
    monkeypatch.setattr(packages, "distribution", lambda: release)
    (apt / file).write_text(text)
    assert packages._source_line("trixie", apt) == line


def test_a_machine_without_a_source_says_so(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "distribution", lambda: BOOKWORM)
    with pytest.raises(BedUnavailable, match="names no archive of bookworm"):
        packages._source_line("trixie", apt)


@pytest.mark.parametrize(
    ("text", "supported"),
    [
        ('ID=debian\nVERSION_CODENAME="bookworm"\n', True),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', True),
        ("ID=fedora\n", False),
        ("", False),
    ],
)
def test_distributions_are_told_apart(tmp_path: Path, text: str, supported: bool) -> None:
    (tmp_path / "os-release").write_text(text)
    assert packages.distribution(tmp_path / "os-release").is_supported is supported


@pytest.mark.skipif(packages.distribution().id != "debian", reason="the versions are those of Debian's suites")
@pytest.mark.parametrize("newer", [False, True])
def test_the_binary_is_compose_v2(newer: bool) -> None:
    done = subprocess.run(
        [compose_binary(newer=newer), "version", "--short"], check=True, capture_output=True, text=True
    )
    major, minor = map(int, done.stdout.split(".")[:2])
    assert (major, minor >= 30) == (2, newer)
