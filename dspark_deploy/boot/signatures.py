"""Failure signatures as data: what a line says, what it means, what to do. The entries stand in signatures.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from dspark_deploy.boot.events import Severity
from dspark_deploy.boot.phases import Phase
from dspark_deploy.strict import Mistake, Name, Strict, Text, read_document, validate

Role = Literal["cause", "symptom", "echo"]
Relation = Literal[
    "no-revision",
    "verify-rows",
    "two-masters",
    "restarted-alone",
    "stale-worker",
    "froze-while-loading",
    "single-node",
    "uneven-memory",
]
PhaseName = Literal[
    "preparation", "arguments", "environment", "model", "scheduler", "engine", "rendezvous", "nccl", "load", "weights",
    "prewarm", "draft", "loaded", "profile", "kv", "warmup", "capture", "engine-ready", "server", "ready",
]  # fmt: skip
FailureId = Annotated[str, Field(pattern=r"^F\d{2,3}$", description="a failure's id of docs/failures.md: F01")]
# A literal is looked for in the log's bytes. In docker's own files quotes, <, > and & are written otherwise.
Literals = tuple[
    Annotated[str, Field(pattern=r'^[^"<>&\\\x00-\x1f]{4,200}$', description="four characters or more")], ...
]

LATER = ConfigDict(defer_build=True)  # a boot that is quick needs none of them, and is not to wait for it


class FollowedBy(Strict):
    """What makes it harmless when it comes later in the same boot."""

    model_config = LATER

    phase: PhaseName | None = None
    text: Literals = ()
    pattern: Text | None = None

    @cached_property
    def regex(self) -> re.Pattern[str] | None:
        """The pattern, compiled."""
        return _compiled(self.pattern)


class Signature(Strict):
    """One thing that a log can say."""

    model_config = LATER

    id: Name
    failure: FailureId | None = None  # None: it tells that something ended, not what
    also: tuple[FailureId, ...] = ()  # failures that print the same text
    text: Literals = ()  # any of these; none with a relation
    pattern: Text | None = None  # must match too, from the literal on or anywhere; its groups fill {braces} below
    unless: Text | None = None  # a pattern that rules it out
    relation: Relation | None = None  # told by several lines together: boot/relations.py
    rank: Literal["any", "head", "worker"] = "any"
    since: PhaseName = "preparation"  # the phases in which the text means this
    until: PhaseName = "ready"
    severity: Severity
    role: Role = "cause"  # symptom: a cause may stand elsewhere; echo: the other rank's end as this one sees it
    followed_by: FollowedBy | None = None
    means: Text
    remedy: Text

    @field_validator("pattern", "unless")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise Mistake(f"no regular expression: {error}", remedy="correct the pattern") from error
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (not self.text) == (self.relation is None):
            raise Mistake("needs either text or relation", remedy="give one of the two")
        if (self.severity == "fatal-unless-followed-by") != (self.followed_by is not None):
            raise Mistake("severity and followed_by don't fit", remedy="give followed_by exactly with that severity")
        if Phase[self.since.upper().replace("-", "_")] > Phase[self.until.upper().replace("-", "_")]:
            raise Mistake("`since` comes after `until`", remedy="swap them")
        return self

    @cached_property
    def regex(self) -> re.Pattern[str] | None:
        """The pattern, compiled."""
        return _compiled(self.pattern)

    @cached_property
    def ruled_out_by(self) -> re.Pattern[str] | None:
        """The pattern of `unless`, compiled."""
        return _compiled(self.unless)

    @cached_property
    def phases(self) -> tuple[Phase, Phase]:
        """First and last phase in which it means this."""
        return phase_named(self.since), phase_named(self.until)

    def explained(self, values: Mapping[str, str]) -> tuple[str, str]:
        """`means` and `remedy` with what the line told. A name that it didn't tell shows as `?`."""
        known = _Values(_with_computed(values))
        return self.means.format_map(known), self.remedy.format_map(known)


class Signatures(Strict):
    """The file."""

    model_config = LATER

    signatures: tuple[Signature, ...]

    @model_validator(mode="after")
    def _once(self) -> Self:
        seen: set[str] = set()
        for each in self.signatures:
            if each.id in seen:
                raise Mistake(f"`{each.id}` stands twice", remedy="give each signature its own id")
            seen.add(each.id)
        return self


def load_signatures(path: Path) -> tuple[Signature, ...]:
    """Read signatures.yaml. Raises ConfigError with file, line and key."""
    document = read_document(path, absent="it travels with dspark: reinstall it")
    return validate(Signatures, document.data, document.where).signatures


def phase_named(name: str) -> Phase:
    """The phase that a data file calls so."""
    return Phase[name.upper().replace("-", "_")]


class _Values(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


def _with_computed(values: Mapping[str, str]) -> dict[str, str]:
    """The values, and `fits`: the highest utilisation that the free memory named in the line allows."""
    known: dict[str, Any] = dict(values)
    try:
        known["fits"] = f"{int(100 * float(known['free']) / float(known['total'])) / 100:.2f}"
    except (KeyError, ValueError, ZeroDivisionError, OverflowError):
        known["fits"] = "?"  # the line names no such numbers
    return known


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    return None if pattern is None else re.compile(pattern)
