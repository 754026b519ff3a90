"""A log as it comes, in pieces of any size, to events: the same ones however it was cut up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dspark_deploy.boot.events import Event, Node
from dspark_deploy.boot.lines import COLOURS, ESCAPE, JSON_LINE, from_json, read_line
from dspark_deploy.boot.machine import BootMachine
from dspark_deploy.boot.record import Boot
from dspark_deploy.boot.rules import Rules

LONGEST_LINE = 16 * 1024  # bytes; what is longer is read in pieces of this size
SHARED = 1024  # bytes that two pieces of one line have in common, so that no literal is cut in two

_ENDS = re.compile(rb"[\r\n]")  # a progress bar redraws itself with carriage returns: each state is a segment
_Hits = list[tuple[int, int, int]]  # index of the literal, start, end; of one segment, counted from its begin


class BootReader:
    """One stream: a rank's log, or a file that may hold both ranks and several boots. Memory is bounded."""

    def __init__(self, rules: Rules, node: Node | None = None, *, progress: bool = True) -> None:
        """`node`: whose log it is, where that is known. Without `progress`, bars that move are no events."""
        self._matcher = rules.matcher
        self._machine = BootMachine(rules, node, progress=progress)
        self._rest = b""  # bytes after the last line end
        self._continued = False  # the rest begins with what an earlier piece of its line ended with
        self._line = 1  # of the rest

    @property
    def boots(self) -> tuple[Boot, ...]:
        """Every boot met so far that is still remembered, in the order in which they began."""
        return self._machine.boots

    def feed(self, data: bytes) -> list[Event]:
        """Take more of the log. Returns what it says, in order."""
        block = self._rest + data
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        self._rest = block[end:]
        events = list(self._block(block[:end])) if end else []
        while len(self._rest) > LONGEST_LINE:
            events += self._segment(self._rest[:LONGEST_LINE], continued=self._continued)
            self._rest = self._rest[LONGEST_LINE - SHARED :]
            self._continued = True
        return events

    def finish(self) -> list[Event]:
        """No more will come: a line without its end is a line too."""
        return self.feed(b"\n") if self._rest else []

    def _block(self, block: bytes) -> Iterator[Event]:
        """Whole lines."""
        if self._continued:
            self._continued = False
            first = _end(block, 0)
            yield from self._pieces(block[:first], continued=True)
            block = block[first:]
        if ESCAPE not in block:
            yield from self._hit_segments(block)
        elif all(len(line) <= LONGEST_LINE for line in block.split(b"\n")):
            yield from self._hit_segments(COLOURS.sub(b"", block))
        else:
            yield from self._each_segment(block)

    def _hit_segments(self, block: bytes) -> Iterator[Event]:
        """Only the segments in which a literal stands are cut out and looked at: the fast path."""
        counted = begin = end = 0
        hits: _Hits = []
        for literal, start, stop in self._matcher.hits(block):
            if start >= end:
                if hits:
                    yield from self._found(block[begin:end], hits)
                begin = max(block.rfind(b"\n", end, start), block.rfind(b"\r", end, start), end - 1) + 1
                end = _end(block, stop)
                self._line += block.count(b"\n", counted, begin)
                counted, hits = begin, []
            hits.append((literal, start - begin, stop - begin))
        if hits:
            yield from self._found(block[begin:end], hits)
        self._line += block.count(b"\n", counted)

    def _each_segment(self, block: bytes) -> Iterator[Event]:
        """Lines with colours, some of them too long: those are cut before they are freed of colours, as `feed` does."""
        begin = 0
        for match in _ENDS.finditer(block):
            if match.start() > begin:
                yield from self._pieces(block[begin : match.start()])
            begin = match.end()
            self._line += match[0] == b"\n"

    def _found(self, segment: bytes, hits: _Hits) -> Iterator[Event]:
        if len(segment) > LONGEST_LINE:
            yield from self._pieces(segment)
        else:
            yield from self._take(segment, hits)

    def _pieces(self, segment: bytes, *, continued: bool = False) -> Iterator[Event]:
        """A segment of any length, cut where `feed` would cut it, had it come without its end."""
        while len(segment) > LONGEST_LINE:
            yield from self._segment(segment[:LONGEST_LINE], continued=continued)
            segment, continued = segment[LONGEST_LINE - SHARED :], True
        yield from self._segment(segment, continued=continued)

    def _segment(self, segment: bytes, *, continued: bool) -> Iterator[Event]:
        """One segment or piece. With `continued`, what ends within its shared begin was seen before."""
        seen = len(COLOURS.sub(b"", segment[:SHARED])) if continued else 0
        bare = COLOURS.sub(b"", segment) if ESCAPE in segment else segment
        hits = [hit for hit in self._matcher.hits(bare) if hit[2] > seen]
        if hits:
            yield from self._take(bare, hits)

    def _take(self, segment: bytes, hits: _Hits) -> Iterator[Event]:
        if segment.startswith(JSON_LINE):
            for part in _ENDS.split(COLOURS.sub(b"", from_json(segment))):
                if inner := self._matcher.hits(part):
                    yield from self._machine.take(read_line(part, self._line, inner))
        elif not self._machine.skim(segment, self._line, hits):
            yield from self._machine.take(read_line(segment, self._line, hits))


def _end(block: bytes, start: int) -> int:
    """Where the segment ends in which `start` stands. The block ends with a line end."""
    newline = block.find(b"\n", start)
    carriage = block.find(b"\r", start, newline if newline >= 0 else len(block))
    return carriage if carriage >= 0 else newline
