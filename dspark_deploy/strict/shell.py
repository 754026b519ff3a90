"""Variables in a file that a POSIX shell sources, read as the shell reads them. Nothing of it is ever run.

What only a running shell could tell (a command's output, a variable that the file does not set, a line that is no
assignment) is no value here but a reason, and the lines after it are read all the same. Reasons never repeat what
stands in the file: it may be a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_ASSIGNMENT = re.compile(rf"({_NAME})=")
_LOOKS_LIKE = re.compile(rf"\s*(?:export\s+)?({_NAME})\s*[=:+]")
_HARMLESS = re.compile(r"\s*set\s+[-+](?:a|o\s+allexport)\s*(?:#.*)?")
_PARAMETER = re.compile(rf"\$(?:({_NAME})|\{{({_NAME})(?:(:?[-+])([^{{}}$`'\"\\]*))?\}})")
_COMMANDS = "`", "$("
_OPERATORS = "|&<>()"
_ESCAPED_IN_QUOTES = '$`"\\'


@dataclass(frozen=True, slots=True)
class Assigned:
    """One variable as one line sets it."""

    line: int
    name: str  # "": the line sets none
    value: str | None  # None: can't be told
    why: str = ""  # why not


class _Unreadable(Exception):
    """What stands there has no value that can be read without a shell."""


def read_assignments(text: str, before: Mapping[str, str]) -> tuple[Assigned, ...]:
    """Every variable that the file sets, in its order; one that is set twice stands there twice.

    `before` is what the shell knows beforehand. A byte-order mark and the line ends of Windows are passed over.
    """
    variables = dict(before)
    found: list[Assigned] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        for each in _Line(number, line.removesuffix("\r"), variables).read():
            found.append(each)
            if each.value is None:
                variables.pop(each.name, None)
            else:
                variables[each.name] = each.value
    return tuple(found)


class _Line:
    """One line. The words of an assignment end with it: the shell's continuations are taken for damage."""

    def __init__(self, number: int, text: str, variables: Mapping[str, str]) -> None:
        self._number = number
        self._text = text
        self._variables = dict(variables)
        self._at = 0
        self._begun: list[str] = []  # names that have got their `=` so far

    def read(self) -> list[Assigned]:
        """What it sets. Where any of it can't be read, nothing of the line has a value."""
        if _HARMLESS.fullmatch(self._text):
            return []
        try:
            return list(self._assignments())
        except _Unreadable as reason:
            match = _LOOKS_LIKE.match(self._text)
            names = self._begun or [match[1] if match else ""]
            return [Assigned(self._number, name, None, str(reason)) for name in names]

    def _assignments(self) -> Iterator[Assigned]:
        exports = False
        while self._skip_blanks():
            match = _ASSIGNMENT.match(self._text, self._at)
            if match is not None:
                self._at = match.end()
                self._begun.append(match[1])
                value = self._variables[match[1]] = self._word()
                if any(each < " " and each != "\t" for each in value):
                    raise _Unreadable("it holds a control character")
                yield Assigned(self._number, match[1], value)
            elif not exports and re.compile(r"export\s").match(self._text, self._at):
                exports = True
                self._at += len("export")
            elif exports and re.compile(rf"{_NAME}(?=[\s;#]|$)").match(self._text, self._at):
                self._word()  # exported under the value it has
            else:
                raise _Unreadable("it is not NAME=value: the shell would take it for a command")

    def _skip_blanks(self) -> bool:
        """Go to the next word. False at the line's end, and where a comment begins."""
        while self._at < len(self._text) and self._text[self._at] in " \t;":
            self._at += 1
        return self._at < len(self._text) and self._text[self._at] != "#"

    def _word(self) -> str:
        value = self._tilde()
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t;":
                break
            if char in _OPERATORS:
                raise _Unreadable("the shell would run or redirect something here")
            value += self._part(char)
        return value

    def _tilde(self) -> str:
        """`~` alone or before a slash is the home, unless it is quoted."""
        if re.compile(r"~(?=[/ \t;]|$)").match(self._text, self._at) is None or "HOME" not in self._variables:
            return ""
        self._at += 1
        return self._variables["HOME"]

    def _part(self, char: str) -> str:
        match char:
            case "'":
                return self._single_quoted()
            case '"':
                return self._double_quoted()
            case "$" | "`":
                return self._expanded()
            case "\\":
                return self._escaped()
        self._at += 1
        return char

    def _single_quoted(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise _Unreadable("its quote is not closed on the line")
        value = self._text[self._at + 1 : end]
        self._at = end + 1
        return value

    def _double_quoted(self) -> str:
        self._at += 1
        value = ""
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return value
            if char in "$`":
                value += self._expanded()
            elif char == "\\" and self._text[self._at + 1 : self._at + 2] not in tuple(_ESCAPED_IN_QUOTES):
                value += char  # kept before everything that needs no escape
                self._at += 1
            elif char == "\\":
                value += self._escaped()
            else:
                value += char
                self._at += 1
        raise _Unreadable("its quote is not closed on the line")

    def _escaped(self) -> str:
        if self._at + 1 >= len(self._text):
            raise _Unreadable("it ends in a backslash: the shell would join the next line to it")
        self._at += 2
        return self._text[self._at - 1]

    def _expanded(self) -> str:
        if self._text.startswith(_COMMANDS, self._at):
            raise _Unreadable("it is a command's output, and nothing is run")
        match = _PARAMETER.match(self._text, self._at)
        if match is None:
            if re.compile(r"\$[\w{'\"@*#?$!-]").match(self._text, self._at):
                raise _Unreadable("it is an expansion that only a shell follows")
            self._at += 1
            return "$"
        self._at = match.end()
        plain, name, operator, word = match.groups()
        return self._parameter(plain or name, operator or "", word or "")

    def _parameter(self, name: str, operator: str, word: str) -> str:
        value = self._variables.get(name)
        is_set = value if operator.startswith(":") else value is not None
        if operator.endswith("-"):
            return value if is_set and value is not None else word
        if operator.endswith("+"):
            return word if is_set else ""
        if value is None:
            raise _Unreadable(f"it refers to ${name}, which the file does not set before")
        return value
