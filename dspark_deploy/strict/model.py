"""The base of everything that is read from a file, and the kinds of text that it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9_-]*$",
        max_length=63,  # it names files, folders, containers and labels
        description="lower-case letters, digits, `-` and `_`, beginning with a letter or a digit, 63 at most",
    ),
]
# A program reads a defined-empty value as set: an empty one is left out instead, never written.
Text = Annotated[
    str, Field(pattern=r"^[^\x00]+$", description="text, in quotes where it looks like a number, and not empty")
]

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="a variable's name")]
Flag = Annotated[str, Field(pattern=r"^--[a-z0-9][a-z0-9-]*$", description="a flag: `--like-this`, without its value")]
FlagValue = Text | int | float | bool


class Strict(BaseModel):
    """Base of everything that is read from a file: frozen, unknown keys refused, no type bent to fit."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Mistake(ValueError):
    """A validator's no: why the value can't be meant, and what to write instead."""

    def __init__(self, why: str, *, remedy: str) -> None:
        super().__init__(why)
        self.remedy = remedy


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was most likely meant to be, or None where nothing is near."""
    close = get_close_matches(word, list(known), n=1)
    return close[0] if close else None
