"""How a value is written so that its reader gets it back exactly: in a compose file, in an env file.

Both readers are compose's own. That nothing is lost is tested against the real program, 2.26.1 and newer.
"""

from __future__ import annotations

from dspark_deploy.errors import ConfigError

_YAML = {"\\": "\\\\", '"': '\\"', "$": "$$"}  # a single $ would begin a variable
_ENV = {"\\": "\\\\", '"': '\\"', "$": "\\$", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_YAML_ESCAPES = ((0xFF, "\\x{:02x}"), (0xFFFF, "\\u{:04x}"), (0x10FFFF, "\\U{:08x}"))


def yaml_string(value: str) -> str:
    """A double-quoted YAML string of a compose file.

    What can't be seen becomes an escape: control characters, but also U+0085 and U+2028, which YAML takes for
    line ends, and the byte-order mark. Raises ConfigError for what no argument can hold.
    """
    refuse_uncarriable(value, what=repr(value))
    return '"' + "".join(_YAML.get(char) or _printable(char) for char in value) + '"'


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
