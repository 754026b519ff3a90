"""A value that stands in no file of ours: typed as a flag, exported as a variable, or written in `.env`."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_origin

from pydantic import BaseModel

from dspark_deploy.errors import ConfigError
from dspark_deploy.strict.accepted import accepts, find_field, is_model, kinds
from dspark_deploy.strict.document import Data, KeyPath

_TRUTH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Given:
    """One such value, as text. `key` may reach into a mapping: `environment.VLLM_LOGGING_LEVEL`."""

    key: str
    text: str
    source: str  # `--set`, `DSPARK_MAX_NUM_SEQS`, `.env line 3`


def data_of(model: type[BaseModel], given: Given) -> tuple[KeyPath, Data]:
    """Where the value goes in the model's data, and the text as the kind of value that belongs there.

    What fits no kind stays text, for validation to name. Raises ConfigError where the value is empty, where a key
    reaches into what is no mapping, and where a mapping is not JSON. The first word of the key must be a field.
    """
    key = tuple(given.key.split(".", maxsplit=1))
    depth, spec = find_field(model, key)
    if depth < len(key):
        raise ConfigError(
            f"{given.source}: `{given.key}` reaches into {key[0]}, which holds {accepts(spec)}",
            remedy=f"set `{key[0]}` itself",
        )
    if not given.text:
        raise ConfigError(f"{given.source}: `{given.key}` is empty", remedy=f"give {accepts(spec)}")
    return key, _typed(given, kinds(spec))


def _typed(given: Given, allowed: set[Any]) -> Data:
    text = given.text
    if any(is_model(kind) or get_origin(kind) in {dict, tuple} for kind in allowed):
        return _json(given)
    if NoneType in allowed and text == "null":
        return None
    if bool in allowed and not allowed & {int, float}:
        return _TRUTH.get(text.lower(), text)
    if allowed & {Any, bool} and text in {"true", "false"}:
        return text == "true"
    return _number(text, allowed)


def _number(text: str, allowed: set[Any]) -> Data:
    for kind in (int, float):
        if allowed & {Any, kind}:
            with suppress(ValueError):
                return kind(text)
    return text


def _json(given: Given) -> Data:
    try:
        return json.loads(given.text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{given.source}: `{given.key}` is not JSON: {error.msg}",
            remedy=f"""give {{"name": "value"}}, or one entry as `{given.key}.NAME=value`""",
        ) from error
