"""A YAML file as data with lines, and every way in which it can't be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dspark_deploy.errors import ConfigError, ExitCode
from dspark_deploy.strict import Document, dotted, read_document

ABSENT = "write one"


def read(folder: Path, content: str | bytes) -> Document:
    path = folder / "inventory.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_document(path, absent=ABSENT)


def refused(folder: Path, content: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(folder, content)
    assert caught.value.code is ExitCode.USAGE
    assert "inventory.yaml" in caught.value.message
    return caught.value


def test_values_are_read_as_yaml_1_2_has_them(tmp_path: Path) -> None:
    text = "a: off\nb: no\nc: 2026-08-01\nd: 010\ne: 0.80\nf: 0x10\ng: ~\nh: true\ni: '6'\nj: [1, x]\nk: .inf\n"
    assert read(tmp_path, text).data == {
        "a": "off",
        "b": "no",
        "c": "2026-08-01",
        "d": 10,
        "e": 0.8,
        "f": 16,
        "g": None,
        "h": True,
        "i": "6",
        "j": [1, "x"],
        "k": ".inf",
    }


def test_every_key_has_its_line(tmp_path: Path) -> None:
    document = read(tmp_path, "# first\nhead:\n  host: a\n  fabric: {address: x}\nlist:\n  - 1\n  - 2\n")
    assert document.lines == {
        (): 2,
        ("head",): 2,
        ("head", "host"): 3,
        ("head", "fabric"): 4,
        ("head", "fabric", "address"): 4,
        ("list",): 5,
        ("list", 0): 6,
        ("list", 1): 7,
    }


def test_a_missing_key_has_the_line_of_what_is_around_it(tmp_path: Path) -> None:
    document = read(tmp_path, "a: 1\nhead:\n  host: a\n")
    assert document.line_of(("head", "fabric", "address")) == 2


def test_a_key_is_written_as_people_write_it() -> None:
    assert dotted(("head", "fabric", "address")) == "head.fabric.address"
    assert dotted(("repositories", 0)) == "repositories[0]"


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    document = read(tmp_path, b"\xef\xbb\xbfname: p\r\nport: 8888\r\n")
    assert document.data == {"name": "p", "port": 8888}
    assert document.line_of(("port",)) == 2


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "latin-1"])
def test_another_encoding_is_refused(tmp_path: Path, codec: str) -> None:
    assert refused(tmp_path, "name: Jürgen\n".encode(codec)).remedy == "save the file as UTF-8"


def test_a_key_that_is_written_twice_names_both_lines(tmp_path: Path) -> None:
    error = refused(tmp_path, "head:\n  host: a\n  host: b\n")
    assert error.message.endswith("inventory.yaml line 3: `head.host` is written twice, first on line 2")


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a: 1\n\tb: 2\n", 2, "tabs"),
        ("a: [1\nb: 2\n", 2, "correct this line"),
        ("a: 'x\n", 2, "correct this line"),
        ("a: 1\n---\nb: 2\n", 2, "correct this line"),
    ],
)
def test_bad_syntax_names_its_line(tmp_path: Path, text: str, line: int, word: str) -> None:
    error = refused(tmp_path, text)
    assert f"line {line}: not valid YAML" in error.message
    assert word in error.remedy


@pytest.mark.parametrize(
    "text", ["a: &x 1\nb: *x\n", "a: &x {b: *x}\n", "a: {<<: {b: 1}}\n", "a: !run x\n", "? [1]\n: 2\n"]
)
def test_yaml_beyond_plain_values_is_refused(tmp_path: Path, text: str) -> None:
    assert "write every value out" in refused(tmp_path, text).remedy


@pytest.mark.parametrize("text", ["", "- 1\n", "just text\n"])
def test_a_file_without_keys_is_refused(tmp_path: Path, text: str) -> None:
    assert "holds no keys" in refused(tmp_path, text).message


def test_control_characters_are_refused(tmp_path: Path) -> None:
    assert "not valid YAML" in refused(tmp_path, "a: \x07\n").message


def test_an_absent_file_says_what_to_do_about_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file") as caught:
        read_document(tmp_path / "none.yaml", absent=ABSENT)
    assert caught.value.remedy == ABSENT


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        read_document(tmp_path, absent=ABSENT)


def test_a_device_is_no_file() -> None:
    with pytest.raises(ConfigError, match="/dev/zero: a device, not a file"):
        read_document(Path("/dev/zero"), absent=ABSENT)


def test_a_pipe_that_nobody_writes_into_does_not_hold_the_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="a pipe that nobody writes into"):
        read_document(tmp_path / "pipe", absent=ABSENT)


def test_what_a_command_writes_into_a_pipe_is_read_to_its_end() -> None:
    with subprocess.Popen(["sh", "-c", "echo 'a: 1'; exec sleep 0.05"], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert read_document(Path(f"/dev/fd/{process.stdout.fileno()}"), absent=ABSENT).data == {"a": 1}


def test_a_text_that_is_read_again_is_a_document_of_its_own(tmp_path: Path) -> None:
    first, second = (read_document(write(tmp_path / name, "a: {b: [1]}\n"), absent=ABSENT) for name in ("x", "y"))
    assert first.data == second.data
    assert first.data["a"] is not second.data["a"]
    assert second.where(("a",)) == f"{tmp_path / 'y'} line 1"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
