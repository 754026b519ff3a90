"""Kinds of option values, as functions from text: click shows what they raise beside the option's name."""

from __future__ import annotations

import re

import click

from dspark_deploy.errors import ConfigError

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}


def duration(text: str) -> float:
    """Seconds in `90s`, `40m`, `1.5h`; a bare number is seconds. Never zero."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is not a duration: write 90s, 40m or 2h")
    seconds = float(match[1]) * UNITS[match[2]]
    if seconds <= 0:
        raise click.BadParameter("must be longer than zero")
    return seconds


def duration_or_zero(text: str) -> float:
    """Likewise, and `0` for not at all."""
    return 0.0 if text.strip() == "0" else duration(text)


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"{text!r} is not a regular expression: {error}") from error


def tokens(text: str) -> int:
    """A number of tokens, one or more: `125272`, `50k`, `1M`."""
    return _tokens(text, least=1)


def tokens_or_none(text: str) -> int:
    """The same, or 0."""
    return _tokens(text, least=0)


def _tokens(text: str, *, least: int) -> int:
    from dspark_deploy.capacity.work import parse_count

    try:
        return parse_count(text, least=least)
    except ConfigError as error:
        raise click.BadParameter(f"{error.message}: {error.remedy}") from error
