"""What became of a release's patches, as a rank's log tells it: the lines that templates/apply.py prints. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

Outcome = Literal["applied", "already", "failed"]

_MARK = "dspark patch: "
_NAME = r"dspark patch: (?P<name>(?:(?!: \| ).)+?): "  # a line that a patch printed itself is no outcome
_ENDED = re.compile(
    _NAME + r"(?P<outcome>applied|already|failed) \(exit (?P<code>-?\d+), (?P<kind>required|optional)\)$"
)
_SAID = re.compile(_NAME + r"\| (?P<line>.*)$")


@dataclass(frozen=True, slots=True)
class PatchOutcome:
    """One patch program, or one plugin, on one rank."""

    name: str  # FOLDER/FILE of the release's patches; a plugin: `FOLDER: plugin NAME`
    outcome: Outcome  # already: it ended well and changed no file
    exit_code: int
    required: bool
    tail: tuple[str, ...] = ()  # what it printed last

    @property
    def printed(self) -> str:
        """What it printed last, as lines for a reader."""
        return "\n".join(f"{self.name}: {line}" for line in self.tail)

    def __str__(self) -> str:
        kind = "required" if self.required else "optional"
        last = f": {self.tail[-1]}" if self.tail else ""
        return f"{kind} patch {self.name} {self.outcome} (exit {self.exit_code}){last}"


def patch_outcomes(lines: Iterable[str]) -> tuple[PatchOutcome, ...]:
    """In the order in which they ran. Of a container that was started again the last start counts."""
    found: dict[str, PatchOutcome] = {}
    said: dict[str, list[str]] = {}
    for line in lines:
        if not tells_of_patches(line):
            continue
        text = line[line.index(_MARK) :].rstrip()
        if match := _ENDED.match(text):
            name = match["name"]
            outcome, kind = cast(Outcome, match["outcome"]), match["kind"]
            tail = tuple(said.pop(name, ()))
            found[name] = PatchOutcome(name, outcome, int(match["code"]), kind == "required", tail)
        elif match := _SAID.match(text):
            said.setdefault(match["name"], []).append(match["line"])
    return tuple(found.values())


def tells_of_patches(line: str) -> bool:
    """Whether `patch_outcomes` would read it."""
    return _MARK in line


def failed(outcomes: Iterable[PatchOutcome]) -> tuple[PatchOutcome, ...]:
    """Those that did not apply."""
    return tuple(each for each in outcomes if each.outcome == "failed")
