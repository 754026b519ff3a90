"""`dspark budget`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.budget_text import budget_text
from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.meter import Meter
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.question import question_options
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.budget import Answer, Question
    from dspark_deploy.flow.tokens import OpenCounter
    from dspark_deploy.flow.wish import Wish


@click.command()
@question_options
@click.option(
    "--chars-per-token",
    type=click.FloatRange(min=0.1),
    default=4.0,
    show_default=True,
    help="What the estimate takes a token of anything but CJK for.",
)
@click.option(
    "--tokenizer",
    metavar="WHAT",
    help="Count with a tokenizer.json, with that in the cache of `head` or `worker`, with the running server's own "
    "(`served`), or by `estimate`. Default: the model's from this machine's cache, else the estimate.",
)
@click.option("--family", help="Image family, instead of the profile's own.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change one value of the profile.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw it: a .png, .svg or .pdf file.")
@common_options
def budget(
    common: Common,
    question: Question,
    chars_per_token: float,
    tokenizer: str | None,
    family: str | None,
    overrides: tuple[str, ...],
    plot: Path | None,
) -> int:
    """Does it fit, how long until the first token, how fast after it: without any host.

    \b
      dspark budget --prompt-tokens 125272 -p agent-1m
      dspark budget --scan src --scan docs -c 4
      git diff | dspark budget --text -
      dspark budget --mix 6x50k,1x900k

    Live tokens are held against the profile's KV pool. Speed is interpolated between published measurements of the
    image's own scheduler, or there is no number. docs/capacity.md says what either is worth.
    """
    if plot:
        from dspark_deploy.flow.picture import refuse_format

        refuse_format(plot)
    wish = common.wish(family=family, overrides=overrides)
    answer = _answer(common, wish, question, _counter(wish, tokenizer, chars_per_token))
    if plot:
        from dspark_deploy.flow.picture import write_picture

        write_picture(answer, plot)
    return _show(common, answer, plot)


def _answer(common: Common, wish: Wish, question: Question, opener: OpenCounter) -> Answer:
    from dspark_deploy.flow.budget import work_out
    from dspark_deploy.flow.own import own_of

    own = own_of(wish)
    with Meter(quiet=common.quiet) as meter:
        return work_out(wish, question, opener, meter.show, own)


def _show(common: Common, answer: Answer, plot: Path | None) -> int:
    report = answer.report
    if common.json:
        print_envelope("budget", ExitCode.OK, result=report, warnings=report.warnings)
        return ExitCode.OK
    for warning in report.warnings:
        click.echo(f"{click.style('[WARN]', fg='yellow')} {warning}", err=True)
    click.echo(budget_text(report))
    if plot:
        click.echo(f"  drawn      {plot}")
    return ExitCode.OK


def _counter(wish: Wish, named: str | None, chars_per_token: float) -> OpenCounter:
    """What opens the counter. The rooms that reach nodes are loaded only where a node is to count."""
    if named in {"served", "head", "worker"}:
        from dspark_deploy.flow.pair_tokens import open_pair_counter
        from dspark_deploy.remote.clock import SystemClock

        return partial(open_pair_counter, named=named, wish=wish, clock=SystemClock())
    from dspark_deploy.flow.tokens import open_counter

    return partial(
        open_counter, named=named, chars_per_token=chars_per_token, environment=wish.environment, home=wish.home
    )
