"""`DSPARK_*` variables and the `.env` beside the inventory: what is set for this user rather than for this pair.

Four of them steer the tool itself; every value of a profile can be set the same way (DSPARK_MAX_NUM_SEQS=4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Literal

from dotenv.parser import parse_stream
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from dspark_deploy.errors import ConfigError
from dspark_deploy.strict import Data, Given, KeyPath, nearest, read_text, validate

_PREFIX = "DSPARK_"


class Variables(BaseSettings):
    """The variables that steer the tool itself."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="forbid")

    inventory: Path | None = None
    profile: str | None = None
    ssh_config: Path | None = None
    output: Literal["text", "json"] | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What was set outside of flags and data files."""

    inventory: Path  # a flag's, DSPARK_INVENTORY's, or ./inventory.yaml
    profile: str | None
    ssh_config: Path | None
    output: Literal["text", "json"] | None
    given: tuple[Given, ...]  # values of the profile, the strongest first
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One variable, and where it is set."""

    name: str
    text: str
    source: str


def load_settings(
    environment: Mapping[str, str], overridable: Collection[str], *, inventory: Path | None = None, directory: Path
) -> Settings:
    """Read the environment, then `.env` beside the inventory, where the environment doesn't speak.

    `overridable` are the profile's values; `inventory` is the flag's; relative paths start in `directory`. Raises
    ConfigError with the variable, or with file and line. A DSPARK_* variable of the environment that means nothing is
    a warning, since upstream's users have some exported; in `.env` it is an error, as any other name is.
    """
    names = {f"{_PREFIX}{field.upper()}": field for field in (*Variables.model_fields, *overridable)}
    exported = [
        _Entry(name, text, name) for name, text in sorted(environment.items()) if name.startswith(_PREFIX) and text
    ]
    unknown = [each.name for each in exported if each.name not in names]
    path = directory / (inventory or _variables(exported).inventory or Path("inventory.yaml"))
    written = list(_read_dotenv(path.parent / ".env", names))
    entries = [each for each in (*exported, *written) if each.name in names]
    variables = _variables(entries)
    return Settings(
        inventory=path,
        profile=variables.profile,
        ssh_config=variables.ssh_config and _place(variables.ssh_config, entries, directory, path.parent),
        output=variables.output,
        given=tuple(Given(names[e.name], e.text, e.source) for e in entries if names[e.name] in overridable),
        warnings=tuple(f"{name} is set in the environment and means nothing{_hint(name, names)}" for name in unknown),
    )


def _variables(entries: Sequence[_Entry]) -> Variables:
    """The tool's own variables; of two entries for one the first holds."""
    first = {each.name: each for each in reversed(entries)}
    source = EnvSettingsSource(Variables)
    source.env_vars = {name.lower(): each.text for name, each in first.items()}

    def where(key: KeyPath) -> str:
        return first[f"{_PREFIX}{str(key[0]).upper()}"].source

    values: dict[str, Data] = source()
    return validate(Variables, values, where)


def _place(named: Path, entries: Sequence[_Entry], directory: Path, beside: Path) -> Path:
    """A relative path starts where its variable stands: in the user's folder, or beside `.env`."""
    entry = next(each for each in entries if each.name == f"{_PREFIX}SSH_CONFIG")
    return (directory if entry.source == entry.name else beside) / named.expanduser()


def _read_dotenv(path: Path, names: Mapping[str, str]) -> Iterator[_Entry]:
    """The entries of `.env`, literally: nothing is expanded in them. No file is no entries."""
    if not path.exists():
        return
    seen: dict[str, int] = {}
    for binding in parse_stream(StringIO(read_text(path, absent="it was there a moment ago"))):
        text, name = binding.original.string, binding.key
        line = binding.original.line + text[: len(text) - len(text.lstrip())].count("\n")
        where = f"{path} line {line}"
        if binding.error or (name is not None and binding.value is None):
            raise ConfigError(f"{where}: not NAME=value", remedy="write NAME=value, quotes in pairs, or a # before it")
        if name is None or binding.value is None:
            continue  # a comment or an empty line
        if name in seen:
            raise ConfigError(f"{where}: {name} is set twice, first on line {seen[name]}", remedy="keep one of them")
        seen[name] = line
        _refuse_foreign(name, where, names)
        if not binding.value:
            raise ConfigError(f"{where}: {name} is empty", remedy="give a value, or take the line out")
        yield _Entry(name, binding.value, where)


def _refuse_foreign(name: str, where: str, names: Mapping[str, str]) -> None:
    if name == f"{_PREFIX}INVENTORY":
        raise ConfigError(
            f"{where}: this file is found by way of the inventory, and can't name it",
            remedy="say -i, or export DSPARK_INVENTORY",
        )
    if name not in names:
        remedy = f"did you mean {guess}?" if (guess := _nearest(name, names)) else "take it out"
        raise ConfigError(f"{where}: {name} is not a setting of dspark", remedy=remedy)


def _hint(name: str, names: Collection[str]) -> str:
    guess = _nearest(name, names)
    return f"; did you mean {guess}?" if guess else ""


def _nearest(name: str, names: Collection[str]) -> str | None:
    """Compared without the prefix, which upstream's names don't have: MAX_MODEL_LENGTH, DSPARK_MAX_MODEL_LEN."""
    guess = nearest(name.removeprefix(_PREFIX), [each.removeprefix(_PREFIX) for each in names])
    return guess and f"{_PREFIX}{guess}"
