"""`dspark compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dspark_deploy.measure.compare import Answered, Comparison

SHOWN = 100  # characters of an answer


@click.command(short_help="The pair beside any other OpenAI-compatible API.")
@click.argument("url")
@click.option("--model", help="The other side's model. Default: the first that it lists.")
@click.option(
    "--key-file", type=click.Path(path_type=Path, dir_okay=False), help="A file that holds the other side's key."
)
@click.option(
    "--key-env", metavar="NAME", help="The variable that holds it. Default: DSPARK_COMPARE_KEY, if it is set."
)
@common_options
def compare(common: Common, url: str, model: str | None, key_file: Path | None, key_env: str | None) -> int:
    """Ask the pair and the API at URL the same questions at temperature 0, and say which side is odd, if any.

    A hosted API of the same model is a good baseline: where it answers sanely and the pair does not, the fault is the
    pair's. Shows both answers, each side's own token counts, and rates.

    Exit 7 when a side is odd or can't be compared (a key refused, TLS, no OpenAI API), naming it; 8 when nothing
    serves.
    """
    from dspark_deploy.flow.compare import Other, compare_with
    from dspark_deploy.remote.clock import Interruption, SystemClock

    other = Other(url, model, key_file, key_env)
    with Interruption() as interruption:
        report = compare_with(common.wish(), other, Narrator(quiet=common.quiet), SystemClock(interruption))
    code = ExitCode.DISAGREES if report.comparison.odd_sides else ExitCode.OK
    if common.json:
        print_envelope("compare", code, result=report, warnings=report.warnings)
        return code
    click.echo("\n".join(_lines(report.comparison)))
    if report.record:
        click.echo(f"kept: {report.record}")
    return code


def _lines(comparison: Comparison) -> Iterator[str]:
    width = max(len(comparison.pair), len(comparison.other))
    for each in comparison.pairings:
        yield f"{each.question}{'  (the same to the byte)' if each.same else ''}"
        yield f"  {comparison.pair:<{width}}  {_answer(each.pair)}"
        yield f"  {comparison.other:<{width}}  {_answer(each.other)}"
    yield click.style(comparison.verdict, fg="red" if comparison.odd_sides else "green", bold=True)


def _answer(answered: Answered) -> str:
    words = " ".join(answered.text.split())
    counts = f"{answered.prompt_tokens or '?'} + {answered.completion_tokens or '?'} tokens"
    rate = f", {answered.decode_tps:.1f} tok/s" if answered.decode_tps else ""
    odd = f" ODD: {'; '.join(answered.odd)}" if answered.odd else ""
    return f"{words[:SHOWN]!r} ({counts}{rate}){odd}"
