"""However a log is cut up or spoiled: the same events, no exception, bounded memory."""

from __future__ import annotations

import sys
import tracemalloc
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dspark_deploy.boot.diagnosis import diagnose
from dspark_deploy.boot.events import Event, Figure, Progress
from dspark_deploy.boot.reader import LONGEST_LINE, BootReader
from dspark_deploy.boot.record import Boot
from dspark_deploy.boot.rules import Rules, compile_rules
from dspark_deploy.boot.signatures import load_signatures
from dspark_deploy.bundled import data_folder
from tests.boot.conftest import Read
from tests.boot.corpus import load, real

RULES = compile_rules(load_signatures(data_folder("profiles") / "signatures.yaml"))
KNOWN = [literal.encode() for literal in RULES.literals]
KV = b"Available KV cache memory: 11.47 GiB"

OTHERS = [
    *(b"\n", b"\r", b"\r\n", b"\xff\xfe", b"\0", b"\x1b[0;36m", b"\x1b]0;", b"\x07", b"\x1b"),
    *(b'{"log":"', b'\\n","stream":"stdout"}\n', b"head   | ", b"(Worker_TP1 pid=1) "),
    b"(APIServer pid=1) INFO 07-18 13:29:28 [a.py:1] ",
    b"[rank1]:[W718 13:29:28.1 x] ",
    *(b" 99% Completed | 48/48 [", b"12.5 GiB", b"2,493,464 tokens", KV),
    b"(0.1/0.0 GiB) on startup is less than x (0.9, 1 GiB)",
]
pieces = st.one_of(
    st.sampled_from(KNOWN),
    st.sampled_from(OTHERS),
    st.binary(max_size=40),
    st.binary(min_size=1, max_size=3).map(lambda part: part * 9000),
)


def read_in(chunks: list[bytes]) -> tuple[list[Event], tuple[Boot, ...]]:
    reader = BootReader(RULES)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    events += reader.finish()
    return events, reader.boots


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=40).map(b"".join), st.lists(st.integers(0, 60_000), max_size=12))
def test_a_log_means_the_same_however_it_is_cut_up(log: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})
    chunks = [log[begin:end] for begin, end in pairwise(edges)]
    whole = read_in([log])
    assert read_in(chunks) == whole
    diagnose(whole[1], RULES.signatures)


@settings(max_examples=60, deadline=None)
@given(st.lists(pieces, max_size=12).map(b"".join))
def test_byte_by_byte_it_means_the_same(log: bytes) -> None:
    log = log[:6000]
    assert read_in([log[index : index + 1] for index in range(len(log))]) == read_in([log])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=4000))
def test_noise_is_no_error(noise: bytes) -> None:
    _, boots = read_in([noise])
    diagnose(boots, RULES.signatures)


def test_every_case_means_the_same_in_small_pieces() -> None:
    for case in (*load("first")[:6], *load("healthy")[:4], *real()[:1]):
        for log in case.logs.values():
            chunks = [log[begin : begin + 777] for begin in range(0, len(log), 777)]
            assert read_in(chunks) == read_in([log]), case.name


def test_a_line_of_a_megabyte_is_read_like_any_other(read: Read) -> None:
    filler = b"x" * 1_000_000
    _, [boot] = read(filler + KV + filler + b" 1/2 clients joined." + b"\n")
    assert boot.figures["kv_gib"] == 11.47
    assert boot.sightings["peer-missing"].line == 1


def test_a_literal_across_the_cut_of_a_long_line_counts_once(read: Read) -> None:
    for begin in range(LONGEST_LINE - 40, LONGEST_LINE + 2):
        log = b"y" * begin + b"1/2 clients joined." + b"z" * 30_000
        _, [boot] = read(log)
        assert boot.sightings["peer-missing"].count == 1, begin


def test_carriage_returns_move_one_bar(read: Read) -> None:
    shown = [f"Loading safetensors checkpoint shards: {n:3d}% Completed | {n}/100 [" for n in (0, 50, 50, 100)]
    events, _ = read("\r".join(shown), node="head")
    assert [event.percent for event in events if isinstance(event, Progress)] == [0, 50, 100]


def test_lines_are_counted_from_one(read: Read) -> None:
    events, _ = read(b"\n\r\n x\n\n" + KV + b"\n", node="head")
    [figure] = [event for event in events if isinstance(event, Figure)]
    assert figure.line == 5


def test_memory_stays_bounded_whatever_comes() -> None:
    reader = BootReader(RULES)
    block = b"".join(literal + b": 12% 1.5 GiB Error: x\n" for literal in KNOWN) + b"q" * 300_000
    reader.feed(block)
    tracemalloc.start()
    try:
        reader.feed(block)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(12):  # to keep what came would take twice what is allowed
            reader.feed(block + f"Unknown vLLM environment variable detected: VLLM_{number}\n".encode() + b"w" * number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 2_000_000
    assert sum(map(sys.getsizeof, reader.boots)) < 100_000


def test_a_restart_loop_keeps_the_first_boots_and_the_last(rules: Rules) -> None:
    reader = BootReader(rules, "head")
    for number in range(200):
        reader.feed(
            b"(APIServer pid=1) INFO 07-18 13:29:28 [a.py:1] non-default args: {'model': 'a/b'}\n"
            b"(APIServer pid=1) INFO 07-18 13:29:28 [a.py:1] Using max model len %d\n" % (number + 1)
        )
    lengths = [boot.figures["max_model_len"] for boot in reader.boots]
    assert lengths == [1, *range(194, 201)]
