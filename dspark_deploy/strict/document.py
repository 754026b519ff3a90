"""A YAML file as plain data, with the line of every key.

The file is read as nodes, not as Python objects: that keeps the lines, leaves `off`, `no` and dates as text
(YAML 1.2), and makes a key that is written twice an error.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dspark_deploy.errors import ConfigError

KeyPath: TypeAlias = tuple[str | int, ...]  # ("head", "fabric", "address")
Data: TypeAlias = Any  # None, bool, int, float, str, and lists and dicts of them

_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Document:
    """One file: what it says, and where."""

    path: Path  # as the user named it
    data: Mapping[str, Data]
    lines: Mapping[KeyPath, int]  # counted from 1; () is the first key's

    def line_of(self, key: KeyPath) -> int:
        """The line of `key`, or of the nearest thing around it where the key itself is missing."""
        while key not in self.lines:
            key = key[:-1]
        return self.lines[key]

    def where(self, key: KeyPath) -> str:
        """`inventory.yaml line 12`, for messages."""
        return f"{self.path} line {self.line_of(key)}"

    def error(self, key: KeyPath, message: str, *, remedy: str, why: str = "") -> ConfigError:
        """The error to raise for what `key` says."""
        return ConfigError(f"{self.where(key)}: `{dotted(key)}` {message}", why=why, remedy=remedy)


def dotted(key: KeyPath) -> str:
    """`head.fabric.address`, `repositories[0]`: a key as people write it."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_document(path: Path, *, absent: str) -> Document:
    """Read one YAML file whose top level is a mapping. `absent` is the remedy where there is no such file.

    Raises ConfigError: no such file, not UTF-8, not YAML, a key twice, an alias or a tag of its own.
    """
    text = read_text(path, absent=absent)
    with _syntax(path):
        node = _composed(text)
    if not isinstance(node, MappingNode):
        raise ConfigError(f"{path}: holds no keys", remedy="write `key: value` lines")
    reader = _Reader(path)
    data = reader.mapping(node, ())
    return Document(path, data, {(): node.start_mark.line + 1} | reader.lines)


@lru_cache(maxsize=64)
def _composed(text: str) -> Node | None:
    """The nodes of a text, which nobody changes. One command asks for the same few files many times over."""
    node: Node | None = YAML(typ="safe", pure=True).compose(text)
    return node


def read_text(path: Path, *, absent: str) -> str:
    """A text file, without its byte-order mark. Raises ConfigError where it is not UTF-8 or can't be read."""
    try:
        content = _content(path)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file", remedy=absent) from error
    except OSError as error:
        remedy = "name a file that you may read"
        raise ConfigError(f"{path}: {error.strerror}", remedy=remedy) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path} line {line}: not UTF-8", remedy="save the file as UTF-8") from error
    if "\0" in text:
        raise ConfigError(f"{path}: not text, or UTF-16 without a mark", remedy="save the file as UTF-8")
    return text


def _content(path: Path) -> bytes:
    """All of a file, or of a pipe: the shell's `<(command)`. Raises OSError, and ConfigError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer would hold us here for ever
    with open(descriptor, "rb") as file:  # noqa: PTH123  pathlib opens paths only
        kind = os.fstat(descriptor).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise ConfigError(f"{path}: a device, not a file", remedy="name a file")
        os.set_blocking(descriptor, True)
        content = file.read()
    if not content and stat.S_ISFIFO(kind):
        raise ConfigError(f"{path}: a pipe that nobody writes into", remedy="name a file")
    return content


@contextmanager
def _syntax(path: Path) -> Iterator[None]:
    """The YAML library's own words, shortened to what and where."""
    try:
        yield
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" line {mark.line + 1}" if mark else ""
        problem = error.problem or error.context
        hint = "indent with spaces, not tabs" if "'\\t'" in str(problem) else "correct this line"
        raise ConfigError(f"{path}{place}: not valid YAML: {problem}", remedy=hint) from error
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply", remedy="write plain `key: value` lines") from error
    except YAMLError as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"{path}: not valid YAML: {first}", remedy="save it as plain text") from error


class _Reader:
    """Turns nodes into data and notes the line of every key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[KeyPath, int] = {}
        self._seen: set[int] = set()

    def mapping(self, node: MappingNode, at: KeyPath) -> dict[str, Data]:
        """One mapping. Keys are text, as they are written."""
        data: dict[str, Data] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode) or key_node.tag == f"{_TAG}merge":
                raise self._refuse(key_node, "a key is one word here; there is no `<<`")
            key = key_node.value
            here = (*at, key)
            if key in data:
                raise self._refuse(key_node, f"`{dotted(here)}` is written twice, first on line {self.lines[here]}")
            self.lines[here] = key_node.start_mark.line + 1
            data[key] = self._value(value_node, here)
        return data

    def _value(self, node: Node, at: KeyPath) -> Data:
        if id(node) in self._seen:
            raise self._refuse(node, f"`{dotted(at)}` is an alias (`*name`) to this line")
        if not str(node.tag).startswith(_TAG):
            raise self._refuse(node, f"`{dotted(at)}` has the tag {node.tag}")
        self._seen.add(id(node))
        match node:
            case MappingNode():
                return self.mapping(node, at)
            case SequenceNode():
                return [self._item(item, (*at, index)) for index, item in enumerate(node.value)]
            case _:
                return _scalar(node)

    def _item(self, node: Node, at: KeyPath) -> Data:
        self.lines[at] = node.start_mark.line + 1
        return self._value(node, at)

    def _refuse(self, node: Node, message: str) -> ConfigError:
        return ConfigError(
            f"{self.path} line {node.start_mark.line + 1}: {message}",
            remedy="write every value out, once; a profile can build on another with `extends`",
        )


def _scalar(node: Node) -> Data:
    """A plain value. What is none of null, true, false or a number is text."""
    text = str(node.value)
    match str(node.tag).removeprefix(_TAG):
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return _number(text, int)
        case "float":
            return _number(text, float)
        case _:
            return text


def _number(text: str, kind: type[int] | type[float]) -> int | float | str:
    """YAML's hexadecimal and octal included; `.nan` and `.inf` stay text, since no setting means them."""
    try:
        return kind(text)
    except ValueError:
        pass
    try:
        return int(text, 0)
    except ValueError:
        return text
