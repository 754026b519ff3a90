"""`explain`: name the cause in any log. Needs no inventory and no node."""

from __future__ import annotations

import codecs
import gzip
import os
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from io import BufferedReader, UnsupportedOperation
from pathlib import Path
from typing import BinaryIO, Protocol

from dspark_deploy.boot.diagnosis import Answer, Diagnosis, Outcome, RankBoot, diagnose
from dspark_deploy.boot.events import Node
from dspark_deploy.boot.reader import BootReader
from dspark_deploy.boot.record import Boot
from dspark_deploy.boot.rules import Rules, compile_rules
from dspark_deploy.boot.signatures import load_signatures
from dspark_deploy.bundled import data_folder
from dspark_deploy.errors import ConfigError

CHUNK = 256 * 1024  # bytes read at a time
GZIP = b"\x1f\x8b"
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # what PowerShell's `>` writes


class Readable(Protocol):
    """Bytes that come from somewhere."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""
        ...


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log to read: a path, or the standard input."""

    path: Path | None
    stream: BinaryIO | None = None

    @property
    def name(self) -> str:
        """As it is shown."""
        return str(self.path) if self.path else "-"


@dataclass(frozen=True, slots=True)
class LogRead:
    """One file that was read. `nodes`: whose log it holds, as far as it tells."""

    name: str
    bytes: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ExplainReport:
    """What the logs say. `answer` is the cause, None where nothing fatal is known."""

    outcome: Outcome
    answer: Answer | None
    failures: tuple[Answer, ...]
    warnings: tuple[Answer, ...]
    ranks: tuple[RankBoot, ...]
    logs: tuple[LogRead, ...]

    @property
    def understood(self) -> bool:
        """Whether the logs tell how the boot went: its cause is known, or it is healthy, or still under way."""
        if self.outcome == "failed":
            return any(each.failure is not None for each in self.failures)
        return self.outcome != "no-boot"


def explain_logs(files: Sequence[LogFile]) -> ExplainReport:
    """Diagnose one log of one rank or of both, or one log of each rank. Raises ConfigError naming the file."""
    rules = bundled_rules()
    boots: list[tuple[Boot, ...]] = []
    sizes: list[int] = []
    for file in files:
        found, size = _read(file, rules)
        boots.append(found)
        sizes.append(size)
    told = [tuple(sorted({boot.node for boot in each if boot.node})) for each in boots]
    known = [_assigned(each, node) for each, node in zip(boots, _nodes(files, told), strict=True)]
    diagnosis: Diagnosis = diagnose([boot for each in known for boot in each], rules.signatures)
    return ExplainReport(
        outcome=diagnosis.outcome,
        answer=diagnosis.answer,
        failures=diagnosis.failures,
        warnings=diagnosis.warnings,
        ranks=diagnosis.ranks,
        logs=tuple(
            LogRead(file.name, size, tuple(sorted({boot.node for boot in each if boot.node})))
            for file, size, each in zip(files, sizes, known, strict=True)
        ),
    )


@cache
def bundled_rules() -> Rules:
    """The signatures that travel with dspark, compiled."""
    return compile_rules(load_signatures(data_folder("profiles") / "signatures.yaml"))


def _read(file: LogFile, rules: Rules) -> tuple[tuple[Boot, ...], int]:
    reader = BootReader(rules, progress=False)
    size = 0
    with _opened(file) as stream:
        for chunk in _chunks(stream):
            size += len(chunk)
            reader.feed(chunk)
    reader.finish()
    return reader.boots, size


@contextmanager
def _opened(file: LogFile) -> Iterator[Readable]:
    """Opened once: what a pipe has given away does not come again."""
    try:
        with _plain(file) as plain:
            _refuse_device(file, plain)
            yield gzip.GzipFile(fileobj=plain) if plain.peek(len(GZIP)).startswith(GZIP) else plain
    except FileNotFoundError as error:
        remedy = "name a file that exists, or - for the standard input"
        raise ConfigError(f"{file.name}: no such file", remedy=remedy) from error
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"{file.name}: {error}", remedy="name a log file that can be read") from error


@contextmanager
def _plain(file: LogFile) -> Iterator[BufferedReader]:
    if file.path is not None:
        with file.path.open("rb") as plain:
            yield plain
        return
    if file.stream is None:
        raise AssertionError("a log without a path comes as a stream")
    plain = BufferedReader(file.stream)  # type: ignore[arg-type]  # BinaryIO does not name readinto, and all have it
    try:
        yield plain
    finally:
        plain.detach()  # whoever gave it closes it


def _refuse_device(file: LogFile, plain: BufferedReader) -> None:
    """/dev/zero has no end. A terminal has: whoever types there ends it."""
    with suppress(UnsupportedOperation):  # no file of the system's at all
        if stat.S_ISCHR(os.fstat(plain.fileno()).st_mode) and not plain.isatty():
            raise ConfigError(
                f"{file.path or 'the standard input'} is a device, and no log", remedy="name a log file, or pipe one in"
            )


def _chunks(stream: Readable) -> Iterator[bytes]:
    """What the stream holds, as UTF-8 where it is UTF-16."""
    first = stream.read(CHUNK)
    decode = codecs.getincrementaldecoder("utf-16")("replace").decode if first.startswith(WIDE) else None
    while first:
        yield decode(first).encode("utf-8", "replace") if decode else first
        first = stream.read(CHUNK)


def _nodes(files: Sequence[LogFile], told: Sequence[tuple[Node, ...]]) -> list[Node | None]:
    """Whose log each file is where it doesn't tell itself: by its name, by the other file, else head first."""
    nodes: list[Node | None] = [each[0] if len(each) == 1 else None for each in told]
    if len(files) == 1:
        return nodes
    order: tuple[Node, ...] = ("head", "worker")
    for index, file in enumerate(files):
        named = [node for node in order if node in Path(file.name).name.lower()]
        if nodes[index] is None and not told[index] and len(named) == 1 and named[0] not in nodes:
            nodes[index] = named[0]
    free: list[Node] = [node for node in order if node not in nodes]
    return [free.pop(0) if node is None and not each and free else node for node, each in zip(nodes, told, strict=True)]


def _assigned(boots: Sequence[Boot], node: Node | None) -> tuple[Boot, ...]:
    """A file of one rank: what it says before it tells which one is that rank's too."""
    return tuple(replace(boot, node=node) if boot.node is None and node else boot for boot in boots)


def unknown_words(report: ExplainReport) -> Mapping[str, tuple[str, ...]]:
    """Rank -> the errors that it states, for logs whose cause no signature knows."""
    return {
        rank.node or "log": tuple(each.text for each in rank.complaints) for rank in report.ranks if rank.complaints
    }
