"""Count the tokens of files and folders. Nothing is written, followed out of the tree, or waited for."""

from __future__ import annotations

import heapq
import os
import signal
import stat
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path

from dspark_deploy.capacity.textsize import is_binary, whole
from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.pieces import PIECE, in_pieces
from dspark_deploy.flow.tree import NEVER_WAITS, Walk
from dspark_deploy.strict import from_home

LARGEST_FILE = 4 * 2**20  # bytes: more than a million tokens of English, so no prompt by itself
_SHOWN = 10  # files that are named as the largest
_BATCH = 250  # files that are counted in one go
_PROCESSES = 4  # more would wait for each other's reading
_PARENT_TURN_S = 0.3  # how soon a process that counts notices that nobody waits for it any more

Count = Callable[[bytes], float]  # a text, or a piece of one -> tokens


@dataclass(frozen=True, slots=True)
class ScanRules:
    """What to count."""

    extensions: frozenset[str] = frozenset()  # lower case, without the dot; empty: all
    largest_file: int = LARGEST_FILE  # bytes
    everything: bool = False  # also what .gitignore and the skip list leave out


@dataclass(frozen=True, slots=True)
class FileSize:
    """One of the largest files."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What was counted and what was not."""

    tokens: int
    files: int
    bytes: int
    skipped: Mapping[str, int]  # reason -> files or folders
    largest: tuple[FileSize, ...]


@dataclass(slots=True)
class Counted:
    """The files of a batch, or of all so far."""

    files: int = 0
    bytes: int = 0
    tokens: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)
    largest: list[tuple[float, str]] = field(default_factory=list)
    share: float = 0.0  # of everything there is to do

    def add(self, other: Counted) -> None:
        """Take another batch in."""
        self.files += other.files
        self.bytes += other.bytes
        self.tokens += other.tokens
        self.skipped += other.skipped
        self.largest = heapq.nlargest(_SHOWN, self.largest + other.largest)
        self.share += other.share


Batch = list[tuple[str, float]]  # path, share of the whole


def scan(
    paths: Sequence[Path],
    rules: ScanRules,
    count: Count,
    watch: Callable[[Counted], None] = lambda _: None,
    *,
    processes: int = 1,
) -> ScanReport:
    """Count the files below `paths`. `watch` hears of every batch.

    With more than one process `count` travels to the others, so it has to be a plain function. Raises ConfigError where
    a named path can't be read.
    """
    walk = Walk(rules.extensions, rules.everything)
    named = _outermost(paths)
    files = chain.from_iterable(walk.files(path, 1 / len(named)) for path in named)
    batches = iter(lambda: list(islice(files, _BATCH)), [])
    total = Counted()
    for counted in _results(partial(count_batch, rules, count), batches, processes):
        total.add(counted)
        watch(Counted(total.files, total.bytes, total.tokens, share=total.share + walk.share))
    return ScanReport(
        tokens=whole(total.tokens),
        files=total.files,
        bytes=total.bytes,
        skipped=dict((total.skipped + walk.skipped).most_common()),
        largest=tuple(FileSize(_printable(name), whole(tokens)) for tokens, name in total.largest),
    )


def usable_processes() -> int:
    """How many processes a scan may have: a copy of this one is only made on Linux, where that takes a moment."""
    return min(len(os.sched_getaffinity(0)), _PROCESSES) if hasattr(os, "sched_getaffinity") else 1


def count_batch(rules: ScanRules, count: Count, batch: Batch) -> Counted:
    """Read and count some files."""
    counted = Counted()
    for path, share in batch:
        counted.share += share
        try:
            file = os.open(path, NEVER_WAITS)
        except OSError:
            counted.skipped["unreadable files"] += 1
            continue
        try:
            _count_file(rules, count, path, file, counted)
        except OSError:
            counted.skipped["unreadable files"] += 1
        finally:
            os.close(file)
    counted.largest = heapq.nlargest(_SHOWN, counted.largest)
    return counted


def _count_file(rules: ScanRules, count: Count, path: str, file: int, counted: Counted) -> None:
    status = os.fstat(file)
    size = status.st_size
    if not stat.S_ISREG(status.st_mode):
        counted.skipped["special files"] += 1
        return
    if size > rules.largest_file:
        counted.skipped["huge files"] += 1
        return
    data = os.read(file, min(size, PIECE))
    if is_binary(data):
        counted.skipped["binary files"] += 1
        return
    if size <= PIECE:
        tokens = count(data)
    else:
        beginning = [data]
        pieces = in_pieces(lambda most: beginning.pop() if beginning else os.read(file, most))
        tokens = sum(count(piece) for piece in pieces)
    counted.files += 1
    counted.bytes += size
    counted.tokens += tokens
    counted.largest.append((tokens, path))


def _results(work: Callable[[Batch], Counted], batches: Iterator[Batch], processes: int) -> Iterator[Counted]:
    """Every batch's result, in order. Other processes are started only for more than a few batches."""
    first = list(islice(batches, processes))
    if processes == 1 or len(first) < processes:
        yield from map(work, chain(first, batches))
        return
    with ProcessPoolExecutor(
        processes,
        mp_context=get_context("fork"),
        initializer=_end_with,
        initargs=(os.getpid(),),
    ) as pool:
        yield from _ahead(pool, work, chain(first, batches), 8 * processes)


def _end_with(parent: int) -> None:
    """In another process: let Ctrl-C end the parent in good order, and whatever ends the parent end this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_TURN_S)
    os._exit(1)


def _ahead(
    pool: ProcessPoolExecutor, work: Callable[[Batch], Counted], batches: Iterable[Batch], most: int
) -> Iterator[Counted]:
    """As map would, but with no more than `most` batches handed out at a time."""
    handed_out: deque[Future[Counted]] = deque()
    for batch in batches:
        handed_out.append(pool.submit(work, batch))
        if len(handed_out) == most:
            yield handed_out.popleft().result()
    while handed_out:
        yield handed_out.popleft().result()


def _outermost(paths: Sequence[Path]) -> list[str]:
    """The named paths, absolute, each once, without those that lie within another. Raises ConfigError."""
    found: list[Path] = []
    for path in paths:
        try:
            found.append(from_home(path).resolve(strict=True))
            os.close(os.open(found[-1], NEVER_WAITS))
        except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links, before Python 3.13
            reason = error.strerror if isinstance(error, OSError) else "a circle of links"
            raise ConfigError(
                f"--scan {_printable(str(path))}: {reason}", remedy="name a file or folder that you may read"
            ) from error
    return [str(path) for path in dict.fromkeys(found) if not any(other in path.parents for other in found)]


def _printable(name: str) -> str:
    """A file's name as text, with bytes that are no UTF-8 written out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
