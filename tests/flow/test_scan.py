"""Counting a tree: what is read, what is left out and why, and that nothing in it stops or hangs the count."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.capacity.textsize import estimate_tokens
from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.pieces import PIECE, in_pieces
from dspark_deploy.flow.scan import Counted, ScanReport, ScanRules, scan, usable_processes


def write(root: Path, **files: str | bytes) -> None:
    """Files by name; `__` stands for `/`."""
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def count(*paths: Path, processes: int = 1, **rules: Any) -> ScanReport:
    return scan(paths, ScanRules(**rules), estimate_tokens, processes=processes)


def test_a_tree_is_the_sum_of_its_files(tmp_path: Path) -> None:
    write(tmp_path, a__one="12345678", b__two="1234", three="你好")
    report = count(tmp_path)
    assert (report.tokens, report.files, report.bytes) == (5, 3, 18)
    assert report.skipped == {}
    assert [each.tokens for each in report.largest] == [2, 2, 1]


def test_tokens_are_rounded_once_and_not_for_every_file(tmp_path: Path) -> None:
    write(tmp_path, a="1", b="1", c="1", d="1")
    assert count(tmp_path).tokens == 1


def test_the_ten_largest_files_are_named_the_largest_first(tmp_path: Path) -> None:
    write(tmp_path, **{f"f{number}": "x" * 4 * number for number in range(1, 15)})
    assert [each.tokens for each in count(tmp_path).largest] == list(range(14, 4, -1))


def test_a_file_may_be_named_whatever_it_is_called(tmp_path: Path) -> None:
    write(tmp_path, **{"poetry.lock": "12345678"})
    assert count(tmp_path / "poetry.lock").tokens == 2
    assert count(tmp_path).skipped == {"lock files and bundles": 1}


def test_a_path_within_another_is_counted_once(tmp_path: Path) -> None:
    write(tmp_path, a__x="12345678")
    assert count(tmp_path, tmp_path / "a", tmp_path / "a" / "x", tmp_path).tokens == 2


def test_folders_and_files_of_tools_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, src__x="1234", node_modules__y="1234", a__dist__z="1234", p__venv__z="1234")
    write(tmp_path, **{"b.png": "1", "c.min.js": "1", "D.PNG": "1"})
    report = count(tmp_path)
    assert report.files == 1
    assert report.skipped == {"folders on the skip list": 3, "binary files": 2, "lock files and bundles": 1}


def test_all_counts_what_the_lists_leave_out_but_no_binary(tmp_path: Path) -> None:
    write(tmp_path, node_modules__y="1234", ignored="1234", **{".gitignore": "ignored\n", "b.png": "1"})
    report = count(tmp_path, everything=True)
    assert report.files == 3
    assert report.skipped == {"binary files": 1}


def test_gitignore_files_hold_below_their_folder_and_the_inner_one_is_asked_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{".gitignore": "*.log\n/only_here\ndrop/\n", "a__.gitignore": "!kept.log\n*.tmp\n"},
        only_here="1",
        a__only_here="1",
        a__kept__x="1",
        drop__x="1",
    )
    write(tmp_path, **{"x.log": "1", "a__x.log": "1", "a__kept.log": "1", "a__x.tmp": "1", "b__x.tmp": "1"})
    report = count(tmp_path)
    named = {Path(each.name).relative_to(tmp_path).as_posix() for each in report.largest}
    assert named == {".gitignore", "a/.gitignore", "a/only_here", "a/kept/x", "a/kept.log", "b/x.tmp"}
    assert report.skipped == {"files that .gitignore names": 4, "folders that .gitignore names": 1}


def test_a_folder_within_a_repository_is_counted_by_the_rules_of_the_whole(tmp_path: Path) -> None:
    write(
        tmp_path, **{".git__HEAD": "x", ".gitignore": "*.log\n/src/out\n", "src__a.log": "1"}, src__out="1", src__b="1"
    )
    report = count(tmp_path / "src")
    assert (report.files, report.skipped) == (1, {"files that .gitignore names": 2})


def test_a_gitignore_that_is_no_file_or_no_text_stops_nothing(tmp_path: Path) -> None:
    write(tmp_path, a__x="1234", b__y="1234", **{"b__.gitignore": b"\xff\xfe\n!\n[z-a]\n"})
    (tmp_path / "a" / ".gitignore").mkdir()
    os.mkfifo(tmp_path / ".gitignore")
    assert count(tmp_path).files == 3


def test_extensions_are_compared_without_their_case(tmp_path: Path) -> None:
    write(tmp_path, **{"a.py": "1234", "b.PY": "1234", "c.md": "1234", "d": "1234"})
    report = count(tmp_path, extensions=frozenset({"py"}))
    assert (report.files, report.skipped) == (2, {"other extensions": 2})


def test_what_is_binary_tells_itself_by_a_zero_byte(tmp_path: Path) -> None:
    write(tmp_path, program=b"\x7fELF\0\0", text="1234", so="1234", a="1234")
    report = count(tmp_path)
    assert (report.files, report.skipped) == (3, {"binary files": 1})  # `so` and `a` are names here, not endings


def test_links_in_circles_and_out_of_the_tree_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, tree__x="1234", outside__y="1234")
    (tmp_path / "tree" / "circle").symlink_to(tmp_path / "tree")
    (tmp_path / "tree" / "self").symlink_to("self")
    (tmp_path / "tree" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "tree" / "gone").symlink_to("nowhere")
    report = count(tmp_path / "tree")
    assert (report.files, report.skipped) == (1, {"links": 4})


def test_a_link_that_is_named_is_followed_once(tmp_path: Path) -> None:
    write(tmp_path, tree__x="1234")
    (tmp_path / "link").symlink_to(tmp_path / "tree")
    assert count(tmp_path / "link").files == 1


def test_pipes_and_sockets_hang_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert count(tmp_path).skipped == {"special files": 2}


def test_a_pipe_that_is_named_hangs_nothing_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert count(tmp_path / "pipe").skipped == {"special files": 1}


def test_a_sparse_giant_is_skipped_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "giant").open("wb") as file:
        file.truncate(2**40)
    report = count(tmp_path)
    assert (report.files, report.skipped) == (0, {"huge files": 1})


def test_a_larger_file_is_counted_where_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, big="你好 four\n" * 600_000)  # 7.2 MB, several pieces
    assert count(tmp_path).skipped == {"huge files": 1}
    assert count(tmp_path, largest_file=2**30).tokens == 600_000 * 2 + 600_000 * 6 / 4


def test_names_that_are_no_utf8_are_shown_with_their_bytes_written_out(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")).write_text("1234")
    (only,) = count(tmp_path).largest
    assert only.name.endswith("/caf\\xe9")


def test_what_may_not_be_read_is_counted_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a__x="1234", b__y="1234", c="1234")
    opened, listed = os.open, os.scandir

    def refuse_open(path: Any, *arguments: Any, **more: Any) -> int:
        if str(path).endswith("/y"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **more)

    def refuse_list(path: Any) -> Any:
        if str(path).endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "open", refuse_open)
    monkeypatch.setattr(os, "scandir", refuse_list)
    report = count(tmp_path)
    assert (report.files, report.skipped) == (1, {"unreadable folders": 1, "unreadable files": 1})


def test_a_file_that_fails_while_it_is_read_is_counted_as_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a="1234")

    def fail(_file: int, _size: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", fail)
    assert count(tmp_path).skipped == {"unreadable files": 1}


def test_a_named_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--scan .*/none: No such file or directory"):
        count(tmp_path / "none")


def test_a_named_circle_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "self").symlink_to("self")
    with pytest.raises(ConfigError, match="--scan"):
        count(tmp_path / "self")


def test_an_empty_tree_is_nothing(tmp_path: Path) -> None:
    assert count(tmp_path) == ScanReport(0, 0, 0, {}, ())


def test_several_processes_count_what_one_does(tmp_path: Path) -> None:
    for folder in range(6):
        write(tmp_path, **{f"d{folder}__f{number}": "你" * number + "x" * folder for number in range(300)})
    write(tmp_path, binary__x=b"\0")
    alone, together = count(tmp_path), count(tmp_path, processes=2)
    assert together == alone
    assert together.files == 1800
    assert 1 <= usable_processes() <= 4


def test_progress_goes_up_and_ends_at_the_whole(tmp_path: Path) -> None:
    write(tmp_path, **{f"d{number % 7}__e{number % 3}__f{number}": "1234" for number in range(1000)})
    (tmp_path / "empty").mkdir()
    seen: list[Counted] = []
    scan([tmp_path], ScanRules(), estimate_tokens, seen.append)
    shares = [each.share for each in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert [each.files for each in seen] == [250, 500, 750, 1000]


def pieces(chunks: Sequence[bytes]) -> list[bytes]:
    waiting = list(chunks)
    return list(in_pieces(lambda _: waiting.pop(0) if waiting else b""))


def test_pieces_are_cut_at_line_ends() -> None:
    assert pieces([b"one\ntw", b"o\nthree"]) == [b"one\n", b"two\n", b"three"]


def test_a_line_without_end_is_cut_between_characters() -> None:
    text = "你好吗".encode()
    assert pieces([text[:4], text[4:8], text[8:]]) == ["你".encode(), "好".encode(), "吗".encode()]


def test_bytes_that_are_no_text_are_cut_anywhere() -> None:
    assert b"".join(pieces([b"\xff" * 5, b"\x80" * 5])) == b"\xff" * 5 + b"\x80" * 5


def test_pieces_together_are_the_whole(tmp_path: Path) -> None:
    content = ("你好" * 1000 + "\n").encode() * 700
    file = tmp_path / "f"
    file.write_bytes(content)
    with file.open("rb") as stream:
        found = list(in_pieces(stream.read))
    assert b"".join(found) == content
    assert max(map(len, found)) <= 2 * PIECE
    assert all(piece.endswith(b"\n") for piece in found)


@pytest.mark.skipif(usable_processes() == 1, reason="here a scan is one process")
def test_nothing_of_a_scan_outlives_its_process(tmp_path: Path) -> None:
    write(tmp_path, **{f"f{number}": "1234" for number in range(1000)})
    started = tmp_path / "started"
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from dspark_deploy.flow.scan import ScanRules, scan\n"
        "def slow(data):\n"
        "    Path(sys.argv[2], str(os.getpid())).touch()\n"
        "    time.sleep(60)\n"
        "    return 1.0\n"
        "scan([Path(sys.argv[1])], ScanRules(), slow, processes=2)\n"
    )
    started.mkdir()
    with subprocess.Popen([sys.executable, "-c", program, tmp_path, started]) as process:
        try:
            wait_for(lambda: len(list(started.iterdir())) == 2)
        finally:
            process.kill()
    workers = [int(path.name) for path in started.iterdir()]
    wait_for(lambda: not any(alive(worker) for worker in workers))


def wait_for(happened: Callable[[], bool], limit_s: float = 20.0) -> None:
    """Returns as soon as it happened; fails after the limit."""
    end = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < end, "did not happen in time"
        threading.Event().wait(0.01)


def alive(process: int) -> bool:
    """Whether it runs; one that nobody has waited for yet does not."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2][:3]
    except OSError:
        return False
