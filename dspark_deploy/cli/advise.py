"""`dspark advise`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.budget_text import spell_seconds
from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.values import duration, tokens, tokens_or_none
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.capacity.advice import Ranked, Seconds
    from dspark_deploy.flow.advise import AdviceReport


@click.command()
@click.option("--sessions", required=True, type=click.IntRange(min=1), help="Sessions that run at once.")
@click.option("--typical", required=True, type=tokens, metavar="N", help="Tokens that a session usually holds: 50k.")
@click.option("--longest", type=tokens, metavar="N", help="Tokens of the longest session. Default: as the typical one.")
@click.option(
    "--output-tokens", type=tokens_or_none, metavar="N", default="2048", show_default=True, help="Of each answer."
)
@click.option("--turns-per-hour", type=click.FloatRange(min=0), help="Requests of one session in an hour.")
@click.option("--ttft", type=duration, metavar="DURATION", help="A first token should come within 10s, 2m.")
@click.option("--all", "everything", is_flag=True, help="Show every profile, not only the best three.")
@common_options
def advise(
    common: Common,
    sessions: int,
    typical: int,
    longest: int | None,
    output_tokens: int,
    turns_per_hour: float | None,
    ttft: float | None,
    everything: bool,
) -> int:
    """Which profile suits the work, why, what would wait, and the command that starts it. Asks no host.

    \b
      dspark advise --sessions 12 --typical 40k --longest 150k --ttft 30s
      dspark advise --sessions 2 --typical 600k --longest 1M

    With -p that profile alone is judged. Where no profile helps, it says what else would.
    """
    from dspark_deploy.capacity.advice import Wanted
    from dspark_deploy.flow.advise import give_advice
    from dspark_deploy.flow.own import own_of

    if longest is not None and longest < typical:
        raise click.BadParameter("is shorter than the typical one", param_hint="--longest")
    wanted = Wanted(sessions, typical, longest or typical, output_tokens, turns_per_hour, ttft)
    report = give_advice(common.wish(), wanted, own_of(common.wish()))
    if common.json:
        print_envelope("advise", ExitCode.OK, result=report, warnings=report.warnings)
    else:
        for warning in report.warnings:
            click.echo(f"{click.style('[WARN]', fg='yellow')} {warning}", err=True)
        click.echo("\n".join(_lines(report, None if everything else 3)))
    return ExitCode.OK


def _lines(report: AdviceReport, most: int | None) -> Iterator[str]:
    ranked = report.advice.ranked
    for number, each in enumerate(ranked[:most], 1):
        suits = "suits" if each.suits else "suits in part" if each.serves_longest else "does not suit"
        shape = f"{each.max_model_len} tokens, {each.max_num_seqs} sequences, family {each.family}"
        yield f"{number}. {each.profile}: {suits} ({shape})"
        yield from (f"     {reason}" for reason in each.reasons)
        yield f"     first token {_seconds(each.ttft)}, of the longest alone {_seconds(each.longest_ttft)}"
        if each.reading_pct is not None:
            yield f"     reading prompts takes {each.reading_pct:.0f} % of the time where nothing is cached"
        yield from _change(each)
    if most is not None and len(ranked) > most:
        yield f"({len(ranked) - most} more with --all)"
    yield from (f"-> {sentence}" for sentence in report.advice.otherwise)


def _change(ranked: Ranked) -> Iterator[str]:
    why = f"  # {ranked.why_change}" if ranked.why_change else ""
    if ranked.change:
        yield f"  -> {ranked.change}{why}"


def _seconds(seconds: Seconds) -> str:
    low, high = seconds.low, seconds.high
    if low is not None and high is not None:
        return spell_seconds(low) if low == high else f"{spell_seconds(low)} to {spell_seconds(high)}"
    if low is not None:
        return f"at least {spell_seconds(low)}"
    return "no number" if high is None else f"at most {spell_seconds(high)}"
