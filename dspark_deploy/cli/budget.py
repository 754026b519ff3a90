"""`dspark budget`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from dspark_deploy.cli.budget_text import budget_text
from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.meter import Meter
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.values import tokens, tokens_or_none
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.tokens import OpenCounter

MIB = 2**20


@click.command()
@click.option("--prompt-tokens", type=tokens, metavar="N", help="Length of the prompt: 125272, 50k, 1M.")
@click.option(
    "--scan",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Count the text of a file or folder as the prompt. May be repeated.",
)
@click.option("--text", type=click.File("rb"), help="Count a text as the prompt; `-` is standard input.")
@click.option("--mix", metavar="LIST", help="Sessions of several sizes at once, each all it holds: 6x50k,1x900k.")
@click.option(
    "--output-tokens", type=tokens_or_none, metavar="N", help="Length of an answer. Default: 2048, in a mix 0."
)
@click.option("-c", "--concurrency", type=click.IntRange(min=1), help="Sessions of this size at once. Default: 1.")
@click.option("--kv-pool", type=tokens, metavar="N", help="The KV pool as your boot log announced it.")
@click.option("--sweep", metavar="NAME|FILE", help="Interpolate in this sweep instead of the one that matches.")
@click.option("--ext", "extensions", multiple=True, metavar="LIST", help="With --scan: only these endings: py,md.")
@click.option("--all", "everything", is_flag=True, help="With --scan: also what .gitignore and the skip list name.")
@click.option(
    "--max-file-mib",
    type=click.FloatRange(min=0),
    default=4.0,
    show_default=True,
    help="With --scan: larger files are skipped.",
)
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
    prompt_tokens: int | None,
    paths: tuple[Path, ...],
    text: BinaryIO | None,
    mix: str | None,
    output_tokens: int | None,
    concurrency: int | None,
    kv_pool: int | None,
    sweep: str | None,
    extensions: tuple[str, ...],
    chars_per_token: float,
    max_file_mib: float,
    everything: bool,
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
    from dspark_deploy.flow.budget import Question, work_out
    from dspark_deploy.flow.scan import ScanRules

    if mix and (prompt_tokens or paths or text or concurrency):
        raise click.UsageError("--mix says everything about the sessions: leave the other sizes and -c out")
    if not (mix or prompt_tokens or paths or text):
        raise click.UsageError("say what to budget: --prompt-tokens, --scan, --text or --mix")
    if plot:
        from dspark_deploy.flow.picture import refuse_format, write_picture

        refuse_format(plot)
    question = Question(
        prompt_tokens=prompt_tokens,
        paths=paths,
        rules=ScanRules(_endings(extensions), round(max_file_mib * MIB), everything),
        text=text.read if text else None,
        mix=mix,
        output_tokens=output_tokens,
        concurrency=concurrency,
        kv_pool=kv_pool,
        sweep=sweep,
    )
    wish = common.wish(family=family, overrides=overrides)
    with Meter(quiet=common.quiet) as meter:
        answer = work_out(wish, question, _counter(common, tokenizer, chars_per_token), meter.show)
    if plot:
        write_picture(answer, plot)
    report = answer.report
    if common.json:
        print_envelope("budget", ExitCode.OK, result=report, warnings=report.warnings)
    else:
        for warning in report.warnings:
            click.echo(f"{click.style('[WARN]', fg='yellow')} {warning}", err=True)
        click.echo(budget_text(report))
        if plot:
            click.echo(f"  drawn      {plot}")
    return ExitCode.OK


def _counter(common: Common, named: str | None, chars_per_token: float) -> OpenCounter:
    """What opens the counter. The rooms that reach nodes are loaded only where a node is to count."""
    wish = common.wish()
    if named in {"served", "head", "worker"}:
        from dspark_deploy.flow.pair_tokens import open_pair_counter
        from dspark_deploy.remote.clock import SystemClock

        return partial(open_pair_counter, named=named, wish=wish, clock=SystemClock())
    from dspark_deploy.flow.tokens import open_counter

    return partial(
        open_counter, named=named, chars_per_token=chars_per_token, environment=wish.environment, home=wish.home
    )


def _endings(given: tuple[str, ...]) -> frozenset[str]:
    """`py,md`, `.py`, `*.py`: lower case, without the dot."""
    words = (word for each in given for word in each.replace(",", " ").split())
    return frozenset(word.removeprefix("*").removeprefix(".").lower() for word in words)
