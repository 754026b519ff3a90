"""`vllm serve`'s command line, from the table that vLLM 0.32.0 wrote of its own parser, adjusted to a family."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NoReturn

from .vllm_family import HERE, Family
from .vllm_log import Death

REASONING_KEYS = {"reasoning_parser", "reasoning_start_str", "reasoning_end_str"}
_SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


class _Parser(argparse.ArgumentParser):
    """Says its errors as the real one does, and takes `_` for `-` in the name of a flag as it does."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, with flag names brought into their one spelling first."""
        words = [re.sub(r"^--[^=]*", lambda flag: flag[0].replace("_", "-"), word) for word in args]
        return super().parse_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        raise Death("usage: vllm serve [model_tag] [options]", f"vllm serve: error: {message}", code=2)


def parse(words: Sequence[str], family: Family) -> argparse.Namespace:
    """Read the words after `vllm serve`. Raises Death as the real parser and its validation end."""
    parser = _build(family)
    found: argparse.Namespace = parser.parse_args(list(words))
    found.model = found.model_tag or "Qwen/Qwen3-0.6B"  # the real default
    _validate(found)
    return found


def non_default(arguments: argparse.Namespace, family: Family) -> dict[str, Any]:
    """What the `non-default args` line shows: every value that is not its default, keys masked."""
    defaults = {action.dest: action.default for action in _build(family)._actions}  # noqa: SLF001
    shown = {
        name: "***" if name == "api_key" else value
        for name, value in vars(arguments).items()
        if name != "model" and value != defaults.get(name)
    }
    return {**shown, "model": arguments.model}


@lru_cache(maxsize=1)
def _build(family: Family) -> _Parser:
    # With a width: the terminal's would be asked for at each of some three hundred flags.
    formatter = partial(argparse.HelpFormatter, width=100)
    parser = _Parser(prog="vllm serve", allow_abbrev=False, add_help=False, formatter_class=formatter)
    parser.add_argument("-h", "--help", action="help")
    for line in (HERE / "vllm-flags-0.32.0.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith(("#", "group\t")):
            continue
        group, names, dest, action, kind, nargs, choices, default, *_ = (*line.split("\t"), "", "", "")
        flags = [name for name in names.split() if name not in family.unknown_flags]
        if group == "positional arguments":
            parser.add_argument(dest, nargs="?")
        elif flags and action != "HelpAction":
            _add(parser, flags, dest, action, kind, nargs, choices, default)
    for flag, kind in family.own_flags:
        parser.add_argument(flag, type=_converter(kind), default=None)
    return parser


def _add(
    parser: _Parser,
    flags: list[str],
    dest: str,
    action: str,
    kind: str,
    nargs: str,
    choices: str,
    default: str,
) -> None:
    value = _default(default)
    if action == "BooleanOptionalAction":
        positive = [flag for flag in flags if not flag.startswith("--no-")]
        parser.add_argument(*positive, dest=dest, action=argparse.BooleanOptionalAction, default=value)
    elif action == "StoreTrueAction":
        parser.add_argument(*flags, dest=dest, action="store_true", default=value)
    elif action == "AppendAction":
        parser.add_argument(*flags, dest=dest, action="append", default=value)
    else:
        allowed = choices.split(",") if choices else None
        convert = str if allowed and kind == "<lambda>" else _converter(kind)
        parser.add_argument(*flags, dest=dest, type=convert, nargs=nargs or None, choices=allowed, default=value)


def _default(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None  # an object of vLLM's own


def _converter(kind: str) -> Callable[[str], Any]:
    """A function that raises ArgumentTypeError with the real parser's words."""
    inner = re.sub(r"^_optional_type\((.*)\)$", r"\1", kind)
    readers: dict[str, Callable[[str], Any]] = {
        "int": int,
        "float": float,
        "human_readable_int": _human_int,
        "human_readable_int_or_auto": lambda text: -1 if text == "auto" else _human_int(text),
        "loads": json.loads,
        "_parse_type(loads)": json.loads,
        "parse_dataclass": json.loads,
        "union_dict_and_str": lambda text: json.loads(text) if text.startswith("{") else text,
    }
    convert = readers.get(inner, str)
    name = {"parse_dataclass": "loads", "_parse_type(loads)": "loads"}.get(inner, inner)

    def read(text: str) -> Any:
        if kind.startswith("_optional_type") and text in {"", "None"}:
            return None
        try:
            return convert(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to <function {name}>.") from None

    return read


def _human_int(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgG]?)", text)
    if not found or ("." in found[1] and not found[2]):
        raise ValueError(text)
    return int(float(found[1]) * _SUFFIXES.get(found[2], 1))


def _validate(arguments: argparse.Namespace) -> None:
    """What is refused right after parsing, before anything is printed."""
    reasoning = arguments.reasoning_config
    if unknown := sorted(set(reasoning or ()) - REASONING_KEYS):
        raise Death(
            f"vllm serve: error: 1 validation error for ReasoningConfig\n{unknown[0]}\n  Unexpected keyword argument",
            code=2,
        )
    if arguments.enable_auto_tool_choice and not arguments.tool_call_parser:
        raise Death("TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser")
    world = arguments.tensor_parallel_size * arguments.pipeline_parallel_size
    if world % arguments.nnodes:
        raise Death(f"ValueError: world size ({world}) must be divisible by --nnodes ({arguments.nnodes})")
    if not 0 <= arguments.node_rank < arguments.nnodes:
        raise Death(f"ValueError: --node-rank ({arguments.node_rank}) must be less than --nnodes ({arguments.nnodes})")
    partial = getattr(arguments, "max_num_partial_prefills", None)
    if partial not in {None, 1}:
        feature = "Concurrent Partial Prefill"
        raise Death(
            f"NotImplementedError: {feature} is not supported. We recommend to remove {feature} from your config."
        )
