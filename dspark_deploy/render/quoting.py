"""How a value is written so that its reader gets it back exactly: in a compose file, an env file, a file of ours.

Of the first two it is compose. That nothing is lost is tested against the real program, 2.26.1 and newer.
"""

from __future__ import annotations

import re

from dspark_deploy.errors import ConfigError

_YAML = {"\\": "\\\\", '"': '\\"', "$": "$$"}  # a single $ would begin a variable
_QUOTED = {"\\": "\\\\", '"': '\\"'}
_ENV = {"\\": "\\\\", '"': '\\"', "$": "\\$", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# What no reader of YAML takes for anything but itself, the words apart.
_PLAIN = re.compile(r"~?[A-Za-z/][A-Za-z0-9/._-]*|\d+(?:\.\d+){3}")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_YAML_ESCAPES = ((0xFF, "\\x{:02x}"), (0xFFFF, "\\u{:04x}"), (0x10FFFF, "\\U{:08x}"))


def yaml_string(value: str) -> str:
    """A double-quoted YAML string of a compose file.

    What can't be seen becomes an escape: control characters, but also U+0085 and U+2028, which YAML takes for
    line ends, and the byte-order mark. Raises ConfigError for what no argument can hold.
    """
    refuse_uncarriable(value, what=repr(value))
    return '"' + "".join(_YAML.get(char) or _printable(char) for char in value) + '"'


def plain_value(value: str | int | float | bool | None) -> str:
    """A value in a YAML file that people edit: bare where that is safe, else in double quotes."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, str):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return quoted(value)


def quoted(value: str) -> str:
    """A text in a YAML file that people edit, in double quotes: also where it looks like a number."""
    return '"' + "".join(_QUOTED.get(char) or _printable(char) for char in value) + '"'


def comment(text: str) -> str:
    """A text behind a `#`: one line, whatever a node or a file had to say."""
    return "".join(char if char.isprintable() else " " for char in text)


def env_string(value: str) -> str:
    """A double-quoted value of an `env_file`, always one line.

    Single quotes would need no escapes, but compose can't read a value in them that ends in a backslash.
    """
    return '"' + "".join(_ENV.get(char, char) for char in value) + '"'


def refuse_uncarriable(value: str, *, what: str) -> None:
    """Raise ConfigError, naming `what`, where no process can get `value`: NUL ends it, a surrogate is no text."""
    for char in value:
        if char == "\0" or "\ud800" <= char <= "\udfff":
            raise ConfigError(
                f"{what}: holds U+{ord(char):04X}, which no argument or variable of a process can hold",
                remedy="take that character out where the value is set",
            )


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    number = ord(char)
    return next(form.format(number) for highest, form in _YAML_ESCAPES if number <= highest)
