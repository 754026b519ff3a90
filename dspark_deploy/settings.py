"""`DSPARK_*` variables and the `.env` beside the inventory: what is set for this user rather than for this pair.

Four of them steer the tool itself, and DSPARK_API_KEY is the key that the served API asks for; every value of a profile
can be set the same way (DSPARK_MAX_NUM_SEQS=4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Literal

from dotenv.parser import Binding, Original, parse_stream
from pydantic import SecretStr
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from dspark_deploy.errors import ConfigError
from dspark_deploy.strict import (
    Data,
    Given,
    KeyPath,
    Mistake,
    from_home,
    key_in,
    nearest,
    read_text,
    refuse_readable,
    validate,
)

_PREFIX = "DSPARK_"
API_KEY = f"{_PREFIX}API_KEY"  # none of Variables: what validation refuses, it shows
_TOLD = 4  # foreign names that a warning tells: it stays on its line


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
    profile_source: str = ""  # the variable, or `.env` and the line
    api_key: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """One variable, and where it is set."""

    name: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class _Dotenv:
    """What `.env` has for us, and what is to be told of the rest."""

    entries: tuple[_Entry, ...] = ()
    warnings: tuple[str, ...] = ()


def load_settings(
    environment: Mapping[str, str], overridable: Collection[str], *, inventory: Path | None = None, directory: Path
) -> Settings:
    """Read the environment, then `.env` beside the inventory, where the environment doesn't speak.

    `overridable` are the profile's values; `inventory` is the flag's; relative paths start in `directory`. Raises
    ConfigError with the variable, or with file and line. A DSPARK_* variable of the environment that means nothing is
    a warning, since upstream's users have some exported; in `.env` it is an error. Other tools read `.env` too: what
    is theirs is one warning, whatever the number of names.
    """
    names = {f"{_PREFIX}{field.upper()}": field for field in (*Variables.model_fields, "api_key", *overridable)}
    exported = [
        _Entry(name, text, name) for name, text in sorted(environment.items()) if name.startswith(_PREFIX) and text
    ]
    unknown = [each.name for each in exported if each.name not in names]
    path = directory / (inventory or _variables(exported).inventory or Path("inventory.yaml"))
    dotenv = _read_dotenv(path.parent / ".env", names)
    entries = [each for each in (*exported, *dotenv.entries) if each.name in names]
    variables = _variables(entries)
    return Settings(
        inventory=path,
        profile=variables.profile,
        ssh_config=variables.ssh_config and _place(variables.ssh_config, entries, directory, path.parent),
        output=variables.output,
        given=tuple(Given(names[e.name], e.text, e.source) for e in entries if names[e.name] in overridable),
        warnings=(
            *(f"{name} is set in the environment and means nothing{_hint(name, names)}" for name in unknown),
            *dotenv.warnings,
        ),
        api_key=_api_key(entries, path.parent / ".env"),
        profile_source=next((each.source for each in entries if each.name == f"{_PREFIX}PROFILE"), ""),
    )


def _api_key(entries: Sequence[_Entry], dotenv: Path) -> SecretStr | None:
    """Raises ConfigError where it is no key, or stands in a file that others can read."""
    entry = next((each for each in entries if each.name == API_KEY), None)
    if entry is None:
        return None
    try:
        if entry.source != entry.name:
            refuse_readable(dotenv)
        return key_in(entry.text)
    except Mistake as mistake:
        raise ConfigError(f"{entry.source}: {API_KEY} {mistake}", remedy=mistake.remedy) from mistake


def _variables(entries: Sequence[_Entry]) -> Variables:
    """The tool's own variables; of two entries for one the first holds."""
    first = {each.name: each for each in reversed(entries)}
    source = EnvSettingsSource(Variables)
    source.env_vars = {name.lower(): each.text for name, each in first.items() if name != API_KEY}

    def where(key: KeyPath) -> str:
        return first[f"{_PREFIX}{str(key[0]).upper()}"].source

    values: dict[str, Data] = source()
    return validate(Variables, values, where)


def _place(named: Path, entries: Sequence[_Entry], directory: Path, beside: Path) -> Path:
    """A relative path starts where its variable stands: in the user's folder, or beside `.env`."""
    entry = next(each for each in entries if each.name == f"{_PREFIX}SSH_CONFIG")
    return (directory if entry.source == entry.name else beside) / from_home(named)


def _read_dotenv(path: Path, names: Mapping[str, str]) -> _Dotenv:
    """What `.env` says, literally: nothing is expanded in it. No file is no entries; a folder is another tool's."""
    if not path.exists() or path.is_dir():
        return _Dotenv()
    entries: dict[str, _Entry] = {}
    foreign: dict[str, None] = {}  # in their order
    for binding in parse_stream(StringIO(read_text(path, absent="it was there a moment ago"))):
        name, where = binding.key or "", f"{path} line {_line_of(binding.original)}"
        if binding.error or name.startswith(_PREFIX):
            entry = _entry(binding, where, names)
            if name in entries:
                first = entries[name].source
                raise ConfigError(f"{where}: {name} is set twice, first on {first}", remedy="keep one of them")
            entries[name] = entry
        elif name:
            foreign[name] = None
    return _Dotenv(tuple(entries.values()), tuple(_passed_over(path, list(foreign), names)))


def _line_of(original: Original) -> int:
    """Of the name: the parser counts from the blank lines before it."""
    text = original.string
    return original.line + text[: len(text) - len(text.lstrip())].count("\n")


def _entry(binding: Binding, where: str, names: Mapping[str, str]) -> _Entry:
    """One of our variables. Raises ConfigError."""
    name, value = binding.key, binding.value
    if binding.error or name is None or value is None:
        raise ConfigError(f"{where}: not NAME=value", remedy="write NAME=value, quotes in pairs, or a # before it")
    if name == f"{_PREFIX}INVENTORY":
        raise ConfigError(
            f"{where}: this file is found by way of the inventory, and can't name it",
            remedy="say -i, or export DSPARK_INVENTORY",
        )
    if name not in names:
        remedy = f"did you mean {guess}?" if (guess := _nearest(name, names)) else "take it out"
        raise ConfigError(f"{where}: {name} is not a setting of dspark", remedy=remedy)
    if not value:
        raise ConfigError(f"{where}: {name} is empty", remedy="give a value, or take the line out")
    return _Entry(name, value, where)


def _passed_over(path: Path, foreign: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """One line about what other tools have in there. A name of upstream's comes first: it may be meant for us."""
    if not foreign:
        return
    ours = {name: guess for name in foreign if (guess := _nearest(name, names))}
    told = [
        *(f"{name} (did you mean {guess}?)" for name, guess in ours.items()),
        *(n for n in foreign if n not in ours),
    ]
    more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    yield f"{path}: passed over, for only {_PREFIX}* is read there: {', '.join(told[:_TOLD])}{more}"


def _hint(name: str, names: Collection[str]) -> str:
    guess = _nearest(name, names)
    return f"; did you mean {guess}?" if guess else ""


def _nearest(name: str, names: Collection[str]) -> str | None:
    """Compared without the prefix, which upstream's names don't have: MAX_MODEL_LENGTH, DSPARK_MAX_MODEL_LEN."""
    guess = nearest(name.removeprefix(_PREFIX), [each.removeprefix(_PREFIX) for each in names])
    return guess and f"{_PREFIX}{guess}"
