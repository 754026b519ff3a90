from __future__ import annotations

import struct

import pytest

from dspark_deploy.remote.host import LogLine
from dspark_deploy.remote.loglines import Demultiplexer

OUT, ERR = 1, 2


def frame(stream: int, message: str) -> bytes:
    data = message.encode()
    return struct.pack(">BxxxL", stream, len(data)) + data


def lines(data: bytes, size: int = 1 << 20) -> list[LogLine]:
    demultiplexer = Demultiplexer()
    found = []
    for start in range(0, len(data), size):
        demultiplexer.feed(data[start : start + size])
        while (line := demultiplexer.next()) is not None:
            found.append(line)
    if demultiplexer.finish():
        while (line := demultiplexer.next()) is not None:
            found.append(line)
    return found


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_both_streams_become_lines_however_they_arrive(size: int) -> None:
    data = frame(OUT, "T1 hello world\n") + frame(ERR, "T2 oh ☃\r\n") + frame(OUT, "T3 \n")
    assert lines(data, size) == [LogLine("T1", "hello world"), LogLine("T2", "oh ☃"), LogLine("T3", "")]


def test_a_long_line_in_several_messages_is_one_line_with_its_first_stamp() -> None:
    data = frame(OUT, "T1 aaa") + frame(ERR, "T2 other\n") + frame(OUT, "T3 bbb") + frame(OUT, "T4 ccc\n")
    assert lines(data) == [LogLine("T2", "other"), LogLine("T1", "aaabbbccc")]


def test_several_lines_in_one_message_are_several_lines() -> None:
    assert lines(frame(OUT, "T1 a\nT2 b\n")) == [LogLine("T1", "a"), LogLine("T2", "b")]


def test_a_progress_bar_is_one_line() -> None:
    assert lines(frame(OUT, "T1 10%\r20%\rdone\n")) == [LogLine("T1", "10%\r20%\rdone")]


def test_a_last_line_without_its_end_is_a_line() -> None:
    assert lines(frame(OUT, "T1 half")) == [LogLine("T1", "half")]
