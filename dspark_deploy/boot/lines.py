"""What surrounds a message in a log line: colours, docker's and compose's prefixes, the process, the time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dspark_deploy.boot.events import Node

# No sequence goes on behind a line's end, so that a line is the same alone and among others.
COLOURS = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])")
ESCAPE = b"\x1b"
JSON_LINE = b'{"log":"'  # docker's json-file driver, when its file itself is what was sent

_PREFIX = re.compile(
    r"(?:\((?P<process>APIServer|EngineCore|MainProcess|Worker|VllmWorker)(?:_TP(?P<rank>\d))?[\w-]* pid=\d+\) )?"
    r"(?:[A-Z]+ (?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d) )?"
)
_PROCESS = re.compile(r"\((APIServer|EngineCore|MainProcess|Worker|VllmWorker)(?:_TP(\d))?[\w-]*(?: pid=\d+)?\)")
_RANK = re.compile(r"\[rank(\d)\]")
_NODE = re.compile(r"(head|worker) *\| ")
_SERVICE = re.compile(r"[\w.-]*(?:vision|sidecar|-vl|qwen)[\w.-]* +\| ")
_PATCH = re.compile(
    r"dspark patch: (?!FATAL)"
)  # what patches of the user's own print and come to: see facts/patches.py
_STAMP = re.compile(r"(?:\d\d-\d\d[ T]|\[[WEIF]\d{3,4} )\d\d:\d\d:\d\d")
_STAMP_PARTS = re.compile(r"(?:(\d\d)-(\d\d)[ T]|\[[WEIF](\d\d?)(\d\d) )(\d\d):(\d\d):(\d\d)")
_DAYS_BEFORE = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)  # in a leap year: a log states no year
_RANKS: dict[str, Node] = {"0": "head", "1": "worker"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line that holds something of interest."""

    text: str  # as it stands, without colours
    hits: tuple[tuple[int, int], ...]  # literals: index, and where it begins in the text
    number: int  # counted from 1
    process: str  # `APIServer`, `EngineCore`, `Worker`, `MainProcess`; empty: none is named
    node: Node | None  # told by the line itself; None: it doesn't say
    stamp_s: float | None  # its own time, in seconds since its year began
    foreign: bool  # a sidecar's line in the same compose project, or one of a patch of the user's own


def read_line(raw: bytes, number: int, hits: Sequence[tuple[int, int, int]]) -> Line:
    """A line with literals at the bytes that `hits` say. What stands last before them counts: two processes may have
    written into one line.
    """
    first = min(start for _, start, _ in hits)
    before = raw[:first].decode("utf-8", "replace")
    text = before + raw[first:].decode("utf-8", "replace")
    shift = len(before) - first
    places = tuple(
        (literal, start + shift if start == first else len(before) + len(raw[first:start].decode("utf-8", "replace")))
        for literal, start, _ in hits
    )
    prefix = _PREFIX.match(before)
    if prefix is not None and (prefix["process"] or prefix["stamp"]) and "(" not in before[prefix.end() :]:
        node = _node(prefix["process"] or "", prefix["rank"])
        stamp_s = _seconds(prefix["stamp"]) if prefix["stamp"] else _last_stamp(before)
        return Line(text, places, number, (prefix["process"] or "").removeprefix("Vllm"), node, stamp_s, foreign=False)
    return _unusual(text, places, number, before)


def _unusual(text: str, places: tuple[tuple[int, int], ...], number: int, before: str) -> Line:
    """A line that begins with something else: compose's or our own prefix, a stamp of docker, half of another line."""
    process, node = "", None
    for match in _PROCESS.finditer(before):
        process, node = match[1].removeprefix("Vllm"), _node(match[1], match[2])
    if marked := _NODE.match(before):
        node = "head" if marked[1] == "head" else "worker"
    elif ranked := _RANK.search(before):
        node = _RANKS.get(ranked[1])
    foreign = (_SERVICE.match(before) or _PATCH.search(text)) is not None
    return Line(text, places, number, process, node, _last_stamp(before), foreign)


def _node(process: str, rank: str | None) -> Node | None:
    if rank is not None:
        return _RANKS.get(rank)
    return "head" if process in {"APIServer", "EngineCore"} else None


def from_json(raw: bytes) -> bytes:
    """The log text of a line of docker's json-file driver; empty where it is none after all."""
    try:
        document = json.loads(raw)
    except ValueError:
        return b""
    match document:
        case {"log": str(text)}:
            return text.encode("utf-8", "replace")
        case _:
            return b""


def _last_stamp(before: str) -> float | None:
    last = None
    for match in _STAMP.finditer(before):
        last = match
    return None if last is None else _seconds(last[0])


@lru_cache(maxsize=64)
def _seconds(stamp: str) -> float | None:
    parts = _STAMP_PARTS.match(stamp)
    if parts is None:
        return None
    month, day = int(parts[1] or parts[3]), int(parts[2] or parts[4])
    hours, minutes, seconds = int(parts[5]), int(parts[6]), int(parts[7])
    if not 1 <= month <= len(_DAYS_BEFORE):
        return None
    return float((((_DAYS_BEFORE[month - 1] + day - 1) * 24 + hours) * 60 + minutes) * 60 + seconds)
