"""`explain` reads what people have: files and pipes, packed, wide, of one rank or of two."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.explain import ExplainReport, LogFile, explain_logs
from tests.boot.corpus import BOOTS, expand

CASE = expand(BOOTS / "first" / "memory-short-on-worker.yaml")
HEAD, WORKER = CASE.logs["head"], CASE.logs["worker"]


def explained(tmp_path: Path, **logs: bytes) -> ExplainReport:
    """The report over files of these names."""
    files = []
    for name, log in logs.items():
        path = tmp_path / name
        path.write_bytes(log)
        files.append(LogFile(path))
    return explain_logs(files)


def place(report: ExplainReport) -> tuple[str | None, str | None]:
    """Failure and node of the answer."""
    return (report.answer.failure, report.answer.node) if report.answer else (None, None)


def test_both_logs_in_either_order_give_the_cause(tmp_path: Path) -> None:
    assert place(explained(tmp_path, a=HEAD, b=WORKER)) == ("F29", "worker")
    assert place(explained(tmp_path, a=WORKER, b=HEAD)) == ("F29", "worker")


def test_the_survivors_log_alone_says_to_read_the_other(tmp_path: Path) -> None:
    report = explained(tmp_path, a=HEAD)
    assert place(report) == ("F55", "head")
    assert report.understood


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_a_pipe_is_read_like_a_file(pack: Callable[[bytes], bytes]) -> None:
    report = explain_logs([LogFile(None, BytesIO(pack(WORKER)))])
    assert place(report) == ("F29", "worker")
    assert (report.logs[0].name, report.logs[0].bytes) == ("-", len(WORKER))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_a_named_pipe_gives_its_bytes_once(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(pack(WORKER),))
    writer.start()
    report = explain_logs([LogFile(path)])
    writer.join()
    assert report.logs[0].bytes == len(WORKER)
    assert place(report) == ("F29", "worker")


def test_a_device_is_no_log() -> None:
    with pytest.raises(ConfigError, match="is a device"):
        explain_logs([LogFile(Path("/dev/zero"))])


def test_a_packed_log_is_unpacked(tmp_path: Path) -> None:
    assert place(explained(tmp_path, log=gzip.compress(WORKER))) == ("F29", "worker")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_what_powershell_saved_is_read(encoding: str, tmp_path: Path) -> None:
    wide = ("\ufeff" + WORKER.decode()).encode(encoding)
    assert place(explained(tmp_path, log=wide)) == ("F29", "worker")


def test_a_log_that_does_not_say_whose_it_is_is_told_by_its_name_or_by_the_other(tmp_path: Path) -> None:
    fatal = b"FATAL: /opt/dspark-patches/hotfix-gb10-spin-wait.sh missing\n"
    assert place(explained(tmp_path, one=HEAD, two=fatal)) == ("F85", "worker")
    assert place(explained(tmp_path, **{"worker.log": fatal, "x": fatal.replace(b"FATAL", b"fine")})) == (
        "F85",
        "worker",
    )
    assert place(explained(tmp_path, one=fatal)) == ("F85", None)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\xff", bytes(range(256)) * 50])
def test_what_is_no_log_is_said_to_be_none(content: bytes, tmp_path: Path) -> None:
    report = explained(tmp_path, log=content)
    assert (report.outcome, report.understood) == ("no-boot", False)


def test_a_broken_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"broken\.gz"):
        explained(tmp_path, **{"broken.gz": gzip.compress(WORKER)[:900]})


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        explain_logs([LogFile(tmp_path / "absent.log")])


def test_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        explain_logs([LogFile(tmp_path)])
