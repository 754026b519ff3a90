"""What is asked of a pair: sessions, each with the tokens it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from dspark_deploy.errors import ConfigError

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([km]?)", re.IGNORECASE)
_GROUP = re.compile(r"(\d+)\s*[x*\N{MULTIPLICATION SIGN}]\s*(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Group:
    """Sessions of one size that run at once."""

    sessions: int
    prompt_tokens: int  # of each; for a mix all that it holds
    output_tokens: int = 0  # of each, on top

    @property
    def session_tokens(self) -> int:
        """Live tokens of one session when its answer is complete."""
        return self.prompt_tokens + self.output_tokens

    @property
    def live_tokens(self) -> int:
        """Live tokens of all of them."""
        return self.sessions * self.session_tokens


@dataclass(frozen=True, slots=True)
class Work:
    """Everything that runs at once."""

    groups: tuple[Group, ...]

    @property
    def sessions(self) -> int:
        """How many."""
        return sum(group.sessions for group in self.groups)

    @property
    def live_tokens(self) -> int:
        """What all of them hold."""
        return sum(group.live_tokens for group in self.groups)

    @property
    def prompt_tokens(self) -> int:
        """All prompts together: what a step's budget is held against when they arrive at once."""
        return sum(group.sessions * group.prompt_tokens for group in self.groups)

    @property
    def longest(self) -> Group:
        """The group with the longest sessions."""
        return max(self.groups, key=lambda group: group.session_tokens)


def together(groups: Iterable[Group]) -> Work:
    """Groups of one size become one."""
    sizes: dict[tuple[int, int], int] = {}
    for group in groups:
        key = (group.prompt_tokens, group.output_tokens)
        sizes[key] = sizes.get(key, 0) + group.sessions
    return Work(tuple(Group(sessions, prompt, output) for (prompt, output), sessions in sizes.items()))


def parse_mix(text: str, output_tokens: int = 0) -> Work:
    """`6x50k,1x900k`: six sessions of 50000 tokens and one of 900000. Raises ConfigError."""
    groups = []
    for part in text.split(","):
        match = _GROUP.fullmatch(part.strip())
        if match is None or not int(match[1]):
            raise ConfigError(f"--mix: {part.strip()!r} is not SESSIONSxTOKENS", remedy="write --mix 6x50k,1x900k")
        groups.append(Group(int(match[1]), parse_count(match[2]), output_tokens))
    return together(groups)


def parse_count(text: str, *, least: int = 1) -> int:
    """Tokens in `125272`, `50k` (50000) or `1M` (1000000). Raises ConfigError where it is none, or too few."""
    match = _COUNT.fullmatch(text.strip().replace("_", ""))
    count = Decimal(match[1]) * _UNITS[match[2].lower()] if match else Decimal(-1)
    if count < least or count != int(count):
        raise ConfigError(f"{text!r} is not a number of tokens", remedy="write 125272, 50k or 1M")
    return int(count)
