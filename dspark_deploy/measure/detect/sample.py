"""One answer as the detectors see it, and what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["script", "garbled", "loop", "markup", "prompt", "empty", "truncated", "mixed"]
Language = Literal["english", "chinese"]
Form = Literal["prose", "code"]

_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_INLINE = re.compile(r"`[^`\n]+`")
# Words that are spoken of: in quotes or brackets, or with their reading in brackets behind them.
_QUOTED = re.compile(
    r"\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|«[^»\n]{1,80}»|[^\x00-\x7f]{1,8} ?\([A-Za-z][^()\n]{1,40}\)|\([^()\n]{1,80}\)"
    r"|（[^（）\n]{1,80}）|「[^」\n]{1,80}」"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer, and what was asked for. `others` are the codes of requests that ran at the same time."""

    answer: str
    prompt: str = ""
    finish_reason: str = "stop"
    language: Language = "english"
    form: Form = "prose"
    code: str = ""  # the reference code that the answer has to begin with; empty: none was asked for
    others: tuple[str, ...] = ()

    @property
    def prose(self) -> str:
        """The answer without its blocks of code and its inline code."""
        return _INLINE.sub(" ", _FENCED.sub("\n", self.answer))

    @property
    def unquoted(self) -> str:
        """The same without what stands in quotes or brackets: words that are spoken of, not spoken."""
        return _QUOTED.sub(" ", self.prose)


@dataclass(frozen=True, slots=True)
class Alarm:
    """One fault, with the piece of text that shows it."""

    kind: Kind
    evidence: str


def excerpt(text: str, at: int, around: int = 30) -> str:
    """The text about a place in it, on one line."""
    return " ".join(text[max(0, at - around) : at + around].split())
