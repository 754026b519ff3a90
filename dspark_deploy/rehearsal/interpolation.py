"""`$NAME` and `${NAME:-default}` in a compose file or an env file, by the rules of compose-go's template package."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_REFERENCE = re.compile(
    r"""\$(?:
      (?P<dollar>\$)
    | (?P<plain>[A-Za-z_]\w*)
    | \{(?P<name>[A-Za-z_]\w*)(?:(?P<how>:?[-+?])(?P<word>[^${}]*))?\}
    | (?P<wrong>\{)
    )""",  # a $ before anything else stays
    re.VERBOSE,
)


class BadInterpolation(Exception):
    """The text refers to a variable in no known form, or to one that has to be set and is not."""


def interpolate(text: str, variables: Mapping[str, str], unset: Callable[[str], None]) -> str:
    """The text with its references replaced; `unset` is told of each variable that nobody set. $$ is one $."""

    def value(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        if match["wrong"]:
            raise BadInterpolation(f"You may need to escape any $ with another $.\n{text}")
        name, how, word = match["plain"] or match["name"], match["how"] or "", match["word"] or ""
        found = variables.get(name)
        is_set = found is not None and (found != "" or not how.startswith(":"))
        if how.endswith("+"):
            return word if is_set else ""
        if is_set and found is not None:
            return found
        if how.endswith("?"):
            raise BadInterpolation(f"required variable {name} is missing a value: {word}")
        if not how:
            unset(name)
        return word

    return _REFERENCE.sub(value, text)
