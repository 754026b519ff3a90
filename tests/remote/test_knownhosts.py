from __future__ import annotations

import base64
from pathlib import Path

import pytest

from dspark_deploy.remote.knownhosts import Verdict, add_key, judge, known_keys

KEY1, KEY2 = b"key one", b"key two"
HASHED = "|1|AAAAAAAAAAAAAAAAAAAAAAAAAAA=|9GdWSkum9tfQDkU01dy2AbH6Ig0="  # of 10.0.0.1, by ssh-keygen -H's rule


def line(names: str, blob: bytes = KEY1, marker: str = "") -> str:
    return f"{marker} {names} ssh-ed25519 {base64.b64encode(blob).decode()} a comment\n".lstrip()


def verdict(path: Path, text: str, name: str, blob: bytes = KEY1) -> Verdict:
    path.write_text(text)
    return judge(blob, known_keys([path], name))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "known_hosts"


@pytest.mark.parametrize(
    ("names", "name", "expected"),
    [
        ("10.0.0.1", "10.0.0.1", "known"),
        ("spark-a,10.0.0.1", "10.0.0.1", "known"),
        ("Spark-A", "spark-a", "known"),
        ("[10.0.0.1]:2222", "[10.0.0.1]:2222", "known"),
        ("[10.0.0.1]:2222", "10.0.0.1", "unknown"),
        ("10.0.0.1", "[10.0.0.1]:2222", "unknown"),
        ("*.lan", "spark-a.lan", "known"),
        ("spark-?", "spark-a", "known"),
        ("*.lan,!spark-b.lan", "spark-b.lan", "unknown"),
        pytest.param(HASHED, "10.0.0.1", "known", id="hashed"),
        pytest.param(HASHED, "10.0.0.2", "unknown", id="hashed, another host"),
        ("|1|broken", "10.0.0.1", "unknown"),
        ("# 10.0.0.1", "10.0.0.1", "unknown"),
    ],
)
def test_a_line_speaks_of_the_hosts_it_names(path: Path, names: str, name: str, expected: Verdict) -> None:
    assert verdict(path, line(names), name) == expected


def test_another_key_is_a_change(path: Path) -> None:
    assert verdict(path, line("a", KEY1), "a", KEY2) == "changed"


def test_one_of_several_keys_is_enough(path: Path) -> None:
    assert verdict(path, line("a", KEY1) + line("a", KEY2), "a", KEY2) == "known"


def test_a_revoked_key_is_refused_though_it_is_known(path: Path) -> None:
    assert verdict(path, line("a") + line("*", marker="@revoked"), "a") == "revoked"


def test_an_authority_is_no_key_of_the_host(path: Path) -> None:
    assert verdict(path, line("*", marker="@cert-authority"), "a") == "unknown"


def test_a_key_that_is_known_without_the_port_counts(path: Path) -> None:
    path.write_text(line("10.0.0.1"))
    without_port = known_keys([path], "10.0.0.1")
    assert judge(KEY1, (), without_port) == "known"
    assert judge(KEY2, (), without_port) == "unknown"


def test_lines_are_named_by_file_and_number(path: Path, tmp_path: Path) -> None:
    path.write_text("# comment\n\n" + line("a"))
    (found,) = known_keys([tmp_path / "missing", path], "a")
    assert (found.path, found.line, found.type, found.blob) == (path, 3, "ssh-ed25519", KEY1)


@pytest.mark.parametrize("hashed", [False, True])
def test_an_added_key_is_known(tmp_path: Path, hashed: bool) -> None:
    path = tmp_path / "new/known_hosts"
    add_key(path, "[10.0.0.1]:2222", "ssh-ed25519", KEY1, hashed=hashed)
    assert judge(KEY1, known_keys([path], "[10.0.0.1]:2222")) == "known"
    assert ("10.0.0.1" in path.read_text()) is not hashed


def test_adding_starts_a_line_of_its_own(path: Path) -> None:
    path.write_text(line("a").rstrip("\n"))
    add_key(path, "b", "ssh-ed25519", KEY2, hashed=False)
    add_key(path, "c", "ssh-ed25519", KEY2, hashed=False)
    assert [text.split()[0] for text in path.read_text().splitlines()] == ["a", "b", "c"]
