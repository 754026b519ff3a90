"""A systemd unit that runs `dspark supervise` on the head or on any controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.errors import ConfigError
from dspark_deploy.render.template import fill


@dataclass(frozen=True, slots=True)
class Unit:
    """What differs from machine to machine."""

    pair: str
    user: str  # whose ssh keys and records it uses
    directory: Path  # where relative names in the inventory begin
    argv: Sequence[str]  # the command, its program as an absolute path


def unit_file(unit: Unit, *, tool: str) -> str:
    """Its text. Raises ConfigError for a word that no unit file can hold."""
    for word in (*unit.argv, str(unit.directory), unit.user):
        if not word.isprintable():
            raise ConfigError(f"{word!r} can't stand in a unit file", remedy="give it another name, without line ends")
    return fill(
        "supervise.service",
        pair=unit.pair,
        user=unit.user,
        directory=_line(str(unit.directory)),
        argv=[_word(word) for word in unit.argv],
        tool=tool,
    )


def _line(text: str) -> str:
    """The rest of a line: % alone is special there (systemd.unit, `Specifiers`)."""
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """A word of a command line (systemd.service, `Command lines`; systemd.syntax, `Quoting`)."""
    safe = _line(text).replace("$", "$$")
    if safe and not any(each in " \"'\\;" for each in safe):
        return safe
    escaped = safe.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
