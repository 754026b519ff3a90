"""`vllm serve`'s argument parser, built from the table that vLLM 0.32.0 wrote of its own.

The table says what a flag is called, how it acts and what it converts with; what a value means to vLLM beyond that is
not in it. Families differ from 0.32.0 in the flags that their own vLLM has or lacks: see FAMILY_LACKS.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import dspark_deploy

TABLE = Path(dspark_deploy.__file__).parent / "rehearsal" / "standin" / "vllm-flags-0.32.0.tsv"

# Flags of 0.32.0 that no command for the family was ever published with; its older vLLM may not have them.
FAMILY_LACKS = {
    "anemll": frozenset[str](),
    "stage-c": frozenset({"--moe-backend", "--long-prefill-token-threshold", "--enable-prompt-tokens-details"}),
}


class Rejected(Exception):
    """The parser's no, in its own words."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Instead of leaving the process."""
        raise Rejected(message)


def parse(argv: Sequence[str], lacks: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The words after `vllm serve` as the parser reads them. Raises Rejected."""
    return vars(_parser(lacks).parse_args(list(argv)))


@cache
def _parser(lacks: frozenset[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="vllm serve", allow_abbrev=False, add_help=False)
    for line in TABLE.read_text().splitlines():
        if line.startswith(("#", "group\t")):
            continue
        _, flags, dest, action, kind, nargs, choices, _default, *_ = line.split("\t")
        names = [flag for flag in flags.split() if flag not in lacks and not flag.startswith("--no-")]
        if names:
            parser.add_argument(*names, **_options(dest, action, kind, nargs, choices, positional=names == [dest]))
    return parser


def _options(dest: str, action: str, kind: str, nargs: str, choices: str, *, positional: bool) -> dict[str, Any]:
    options: dict[str, Any] = {} if positional else {"dest": dest}
    match action:
        case "BooleanOptionalAction":
            return options | {"action": argparse.BooleanOptionalAction}
        case "StoreTrueAction" | "HelpAction":
            return options | {"action": "store_true"}
        case "AppendAction":
            options["action"] = "append"
        case _:
            pass
    if nargs:
        options["nargs"] = nargs
    convert = _CONVERTERS.get(kind.removeprefix("_optional_type(").rstrip(")"), str)
    if choices:
        options["choices"] = [each if each == "None" else convert(each) for each in choices.split(",")]
    return options | {"type": convert}


def _readable(text: str) -> int:
    """`8192`, `1k`, `1K`: thousands in small letters, powers of two in capitals."""
    factor = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
    return int(float(text[:-1]) * factor) if factor > 1 else int(text)


def _dataclass(text: str) -> Any:
    """A dataclass from JSON. Only the reasoning config's keys are known here."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise TypeError("not a mapping")
    return value


def _reasoning(value: dict[str, Any]) -> None:
    unknown = value.keys() - {"reasoning_parser", "reasoning_start_str", "reasoning_end_str"}
    if unknown:
        raise Rejected(f"--reasoning-config: unexpected keyword {sorted(unknown)}")


def check(parsed: dict[str, Any]) -> None:
    """What vLLM checks once all is parsed. Raises Rejected."""
    if parsed["enable_auto_tool_choice"] and not parsed["tool_call_parser"]:
        raise Rejected("--enable-auto-tool-choice requires --tool-call-parser")
    _reasoning(parsed["reasoning_config"] or {})


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "loads": json.loads,
    "human_readable_int": _readable,
    "human_readable_int_or_auto": _readable,
    "parse_dataclass": _dataclass,
}
