r"""An env file as compose-go's dotenv package reads it.

Unquoted values end at a ` #` or at the line's end; single quotes keep everything; double quotes know the escapes of
Go, of which `\$` is a `$` that refers to nothing. References are replaced in all but single quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dspark_deploy.rehearsal.interpolation import interpolate

_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[^=:\n#]*?)[ \t]*(?P<mark>[=:]|\n|#|$)")
_ESCAPE = re.compile(r'\\(?:(?P<letter>[abfnrtv"\\$])|0(?P<octal>[0-7]{3}))')
_LETTERS = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    '"': '"',
    "\\": "\\",
    "$": "$$",
}


class BadEnvFile(Exception):
    """The file can't be read; the text names the line."""


def read_env(text: str, environment: Mapping[str, str]) -> dict[str, str | None]:
    """Name -> value; None for a name that stands alone. References see `environment`, then what came before."""
    found: dict[str, str | None] = {}
    at = 0
    text = text.replace("\r\n", "\n")
    while at < len(text):
        if text[at] in " \t\n":
            at += 1
        elif text[at] == "#":
            at = _line_end(text, at)
        else:
            name, value, at = _entry(text, at, {**{k: v for k, v in found.items() if v is not None}, **environment})
            found[name] = value
    return found


def _entry(text: str, at: int, variables: Mapping[str, str]) -> tuple[str, str | None, int]:
    match = _NAME.match(text, at)
    if match is None or not match["name"] or re.search(r"\s", match["name"]):
        raise BadEnvFile(f"line {_line(text, at)}: key cannot contain a space")
    if match["mark"] not in {"=", ":"}:
        return match["name"], None, _line_end(text, at)
    at = match.end()
    while at < len(text) and text[at] in " \t":
        at += 1
    value, at = _value(text, at, variables)
    return match["name"], value, at


def _value(text: str, at: int, variables: Mapping[str, str]) -> tuple[str, int]:
    quote = text[at : at + 1]
    if quote not in {"'", '"'}:
        end = _line_end(text, at)
        plain = re.split(r"(?:^|[ \t])#", text[at:end], maxsplit=1)[0].strip()
        return _resolved(plain, variables), end
    end = at + 1
    while text[end : end + 1] != quote:
        if end >= len(text):
            raise BadEnvFile(f"line {_line(text, at)}: unterminated quoted value {text[at : _line_end(text, at)]}")
        end += 2 if text[end] == "\\" else 1
    inner = text[at + 1 : end]
    if quote == '"':
        inner = _resolved(_ESCAPE.sub(_escaped, inner), variables)
    return inner, _line_end(text, end)


def _escaped(match: re.Match[str]) -> str:
    return _LETTERS[match["letter"]] if match["letter"] else chr(int(match["octal"], 8))


def _resolved(text: str, variables: Mapping[str, str]) -> str:
    return interpolate(text, variables, lambda _: None)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
