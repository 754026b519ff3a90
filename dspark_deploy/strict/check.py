"""Plain data against a model: the typed value, or a ConfigError that names every mistake in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dspark_deploy.errors import ConfigError
from dspark_deploy.strict.accepted import accepts, accepts_key, find_field, known_keys
from dspark_deploy.strict.document import Data, KeyPath, dotted
from dspark_deploy.strict.model import Mistake, nearest

ModelT = TypeVar("ModelT", bound=BaseModel)


def validate(model: type[ModelT], data: Mapping[str, Data], where: Callable[[KeyPath], str]) -> ModelT:
    """The data as `model`. `where` says where a key stands: `inventory.yaml line 12`, `--set`.

    Values are checked as JSON is: "6" is no number and true is no 1, while a list may become a tuple and text an
    address. Raises ConfigError with all mistakes, each with place, key, accepted form and remedy.
    """
    try:
        return model.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        if (key := _undecodable(data)) is not None:
            message = f"{where(key)}: `{dotted(key)}` is not UTF-8: {_shown(_at(data, key))}"
            raise ConfigError(message, remedy="give it as UTF-8") from error
        raise explain(model, data, where, error) from error


def _undecodable(data: Data, at: KeyPath = ()) -> KeyPath | None:
    """The key of a text that holds bytes of the command line or the environment which are no text."""
    match data:
        case str():
            return at if any("\ud800" <= each <= "\udfff" for each in data) else None
        case dict():
            names = (_undecodable(key, (*at, key)) for key in data)
            inner = chain(names, (_undecodable(value, (*at, key)) for key, value in data.items()))
        case list():
            inner = chain(_undecodable(value, (*at, index)) for index, value in enumerate(data))
        case _:
            return None
    return next((key for key in inner if key is not None), None)


def explain(
    model: type[BaseModel], data: Mapping[str, Data], where: Callable[[KeyPath], str], error: ValidationError
) -> ConfigError:
    """What pydantic found, in the file's terms: one error, whatever the number of mistakes."""
    found: dict[KeyPath, ConfigError] = {}
    slips_first = sorted(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    for each in slips_first:  # a slip of the pen before what is missing because of it
        key, mistake = _mistake(model, data, where, each)
        found.setdefault(key, mistake)  # an alternative of a union is a mistake of its own in pydantic's list
    first, *others = found.values()
    if not others:
        return first
    why = "\n".join(f"{each.message} -> {each.remedy}" for each in others)
    return ConfigError(first.message, why=f"{first.why}\n{why}".strip(), remedy=first.remedy)


def _mistake(
    model: type[BaseModel], data: Mapping[str, Data], where: Callable[[KeyPath], str], found: Any
) -> tuple[KeyPath, ConfigError]:
    location: KeyPath = tuple(found["loc"])
    depth, spec = find_field(model, location)
    if found["type"] == "extra_forbidden":
        depth, spec = find_field(model, location[:-1])
        return location, _unknown(location, known_keys(spec), where)
    key = location[:depth]
    if found["type"] == "missing":
        message = f"{where(key)}: `{dotted(key)}` is missing"
        return key, ConfigError(message, remedy=f"add `{dotted(key)}`: {accepts(spec)}")
    if location[-1:] == ("[key]",):
        message = f"{where(key)}: `{dotted(key)}` is no name that can stand here"
        return key, ConfigError(message, remedy=f"give {accepts_key(model, key)}")
    cause = found.get("ctx", {}).get("error")
    place = f"{where(key)}: `{dotted(key)}`"
    value = _shown(_at(data, key))
    if isinstance(cause, Mistake):
        said = f"{place} is {value}: {cause}" if key else f"{where(key)}: {cause}"
        return key, ConfigError(said, remedy=cause.remedy)
    return key, ConfigError(f"{place} is {value}", remedy=f"give {accepts(spec)}")


def _unknown(key: KeyPath, known: tuple[str, ...], where: Callable[[KeyPath], str]) -> ConfigError:
    guess = nearest(str(key[-1]), known)
    remedy = f"did you mean `{guess}`?" if guess else f"known here: {', '.join(known)}"
    return ConfigError(f"{where(key)}: `{dotted(key)}` is not a known key", remedy=remedy)


def _at(data: Data, key: KeyPath) -> Data:
    for part in key:
        data = data[part]
    return data


def _shown(value: Data) -> str:
    text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004  a message stays on its line
