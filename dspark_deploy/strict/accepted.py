"""What a field of a model accepts, in words: read off its type, so that a message can't go stale."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    str: "text (in quotes where it looks like a number)",
    IPv4Address: "an IPv4 address",
    Path: "a path",
    type(None): "null",
}


class Spec(NamedTuple):
    """What is declared for a value."""

    annotation: Any
    constraints: tuple[Any, ...] = ()
    words: str | None = None  # its own description, which beats what can be read off the type


def find_field(model: type[BaseModel], key: Sequence[str | int]) -> tuple[int, Spec]:
    """How many steps of `key` lead to a declared field or entry, and what is declared for that."""
    spec = Spec(model)
    for depth, part in enumerate(key):
        inner = _step(spec, part)
        if inner is None:
            return depth, spec
        spec = inner
    return len(key), spec


def known_keys(spec: Spec) -> tuple[str, ...]:
    """The keys that a mapping of this kind knows; empty where it takes any."""
    return tuple(key for kind in kinds(spec) if is_model(kind) for key in kind.model_fields)


def accepts(spec: Spec) -> str:
    """In words: `a whole number from 1 to 65535`, or for an address or a literal: an IPv4 address or `auto`."""
    bare = _unwrap(spec)
    return bare.words or " or ".join(_accepts_one(each) for each in _alternatives(bare))


def accepts_key(model: type[BaseModel], key: Sequence[str | int]) -> str:
    """What the keys of the mapping around `key` have to be."""
    _, spec = find_field(model, key[:-1])
    return next((accepts(Spec(get_args(kind)[0])) for kind in kinds(spec) if get_origin(kind) is dict), "text")


def kinds(spec: Spec) -> set[Any]:
    """The plain types that it allows: `int | Literal["auto"]` gives int and the literal."""
    return {each.annotation for each in _alternatives(spec)}


def is_model(kind: Any) -> bool:
    """Whether this is one of our models."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _alternatives(spec: Spec) -> Iterator[Spec]:
    bare = _unwrap(spec)
    if get_origin(bare.annotation) in {Union, types.UnionType}:
        for each in get_args(bare.annotation):
            yield from _alternatives(Spec(each, bare.constraints))
    else:
        yield bare


def _accepts_one(spec: Spec) -> str:
    kind, origin = spec.annotation, get_origin(spec.annotation)
    if spec.words or kind in _WORDS:
        return spec.words or _WORDS[kind]
    if kind in {int, float}:
        return ("a whole number" if kind is int else "a number") + _bounds(spec.constraints)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in get_args(kind))
    if origin is tuple:
        return f"a list, each {accepts(Spec(get_args(kind)[0]))}"
    return "a mapping (`key: value` lines)"


def _step(spec: Spec, part: str | int) -> Spec | None:
    for kind in kinds(spec):
        if is_model(kind):
            field: FieldInfo | None = kind.model_fields.get(str(part))
            return Spec(field.annotation, tuple(field.metadata), field.description) if field else None
        if get_origin(kind) is dict:
            return Spec(get_args(kind)[1])
        if get_origin(kind) is tuple:
            return Spec(get_args(kind)[0])
    return None


def _unwrap(spec: Spec) -> Spec:
    """Off with `Annotated`: its constraints and description move beside the plain type."""
    annotation, constraints, words = spec
    while get_origin(annotation) is Annotated:
        annotation, *extra = get_args(annotation)
        for each in extra:
            inner = tuple(each.metadata) if isinstance(each, FieldInfo) else (each,)
            words = words or (each.description if isinstance(each, FieldInfo) else None)
            constraints = (*constraints, *inner)
    return Spec(annotation, constraints, words)


def _bounds(constraints: Sequence[Any]) -> str:
    low = high = ""
    for each in constraints:
        match each:
            case annotated_types.Ge(ge=value):
                low = f" from {value}"
            case annotated_types.Gt(gt=value):
                low = f" above {value}"
            case annotated_types.Le(le=value):
                high = f" to {value}"
            case annotated_types.Lt(lt=value):
                high = f" below {value}"
            case _:
                pass
    return low + (f", up{high}" if low.startswith(" above") and high.startswith(" to") else high)
