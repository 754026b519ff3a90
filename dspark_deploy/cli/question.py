"""Options that say what work is budgeted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dspark_deploy.cli.values import tokens, tokens_or_none

F = TypeVar("F", bound=Callable[..., Any])

MIB = 2**20
QUESTION = (
    click.option("--prompt-tokens", type=tokens, metavar="N", help="Length of the prompt: 125272, 50k, 1M."),
    click.option(
        "--scan",
        "paths",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Count the text of a file or folder as the prompt. May be repeated.",
    ),
    click.option("--text", type=click.File("rb"), help="Count a text as the prompt; `-` is standard input."),
    click.option("--mix", metavar="LIST", help="Sessions of several sizes at once, each all it holds: 6x50k,1x900k."),
    click.option(
        "--output-tokens", type=tokens_or_none, metavar="N", help="Length of an answer. Default: 2048, in a mix 0."
    ),
    click.option("-c", "--concurrency", type=click.IntRange(min=1), help="Sessions of this size at once. Default: 1."),
    click.option("--kv-pool", type=tokens, metavar="N", help="The KV pool as your boot log announced it."),
    click.option("--sweep", metavar="NAME|FILE", help="Interpolate in this sweep instead of the one that matches."),
    click.option("--ext", "extensions", multiple=True, metavar="LIST", help="With --scan: only these endings: py,md."),
    click.option("--all", "everything", is_flag=True, help="With --scan: also what .gitignore and the skip list name."),
    click.option(
        "--max-file-mib",
        type=click.FloatRange(min=0),
        default=4.0,
        show_default=True,
        help="With --scan: larger files are skipped.",
    ),
)


def question_options(command: F) -> F:
    """Give `command` these options; it receives one `question` made of them."""

    @functools.wraps(command)
    def gathered(*args: Any, **given: Any) -> Any:
        from dspark_deploy.flow.budget import Question
        from dspark_deploy.flow.scan import ScanRules

        _refuse_contradictions(given)
        endings = _endings(given.pop("extensions"))
        rules = ScanRules(endings, round(given.pop("max_file_mib") * MIB), given.pop("everything"))
        text = given.pop("text")
        asked = {name: given.pop(name) for name in Question.__dataclass_fields__ if name not in {"rules", "text"}}
        return command(*args, question=Question(**asked, rules=rules, text=text.read if text else None), **given)

    decorated: Any = gathered
    for option in reversed(QUESTION):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # the decorators keep the callable's shape but not its type


def _refuse_contradictions(given: dict[str, Any]) -> None:
    counted = given["prompt_tokens"] or given["paths"] or given["text"]
    if given["mix"] and (counted or given["concurrency"]):
        raise click.UsageError("--mix says everything about the sessions: leave the other sizes and -c out")
    if not (given["mix"] or counted):
        raise click.UsageError("say what to budget: --prompt-tokens, --scan, --text or --mix")


def _endings(given: tuple[str, ...]) -> frozenset[str]:
    """`py,md`, `.py`, `*.py`: lower case, without the dot."""
    words = (word for each in given for word in each.replace(",", " ").split())
    return frozenset(word.removeprefix("*").removeprefix(".").lower() for word in words)
