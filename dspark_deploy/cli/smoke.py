"""`dspark smoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.findings import findings_text
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.smoke import SmokeReport


@click.command(short_help="Does what is served answer sanely?")
@click.option(
    "--gate", is_flag=True, help="The quality gate too: prose, code and steady answers at rising concurrency."
)
@click.option("--churn", is_flag=True, help="One steady answer while other requests come and leave.")
@click.option("--deep", type=click.IntRange(min=64), metavar="N", help="One prompt of N tokens, with its TTFT.")
@click.option("--most", type=click.IntRange(1, 64), help="Most requests at once. Default: the profile's, at most 6.")
@common_options
def smoke(common: Common, gate: bool, churn: bool, deep: int | None, most: int | None) -> int:
    """Ask the pair one small request of every kind and look at what comes back: model list, chat and completion,
    streamed and whole, a prompt beyond 411 tokens, a tool call, reasoning, an image that has to be refused.

    --gate asks the same questions at 1, 2, 4 and 6 at once and looks for another script, loops, leaked markup or
    prompts, empty, cut or mixed-up answers, and for steady answers that differ. The evidence is kept.

    Exit 7 when an answer is bad, 8 when nothing serves.
    """
    from dspark_deploy.flow.smoke import SmokeWish, prove
    from dspark_deploy.remote.clock import Interruption, SystemClock

    narrator = Narrator(quiet=common.quiet)
    with Interruption() as interruption:
        report = prove(common.wish(), SmokeWish(gate, churn, deep, most), narrator, SystemClock(interruption))
    code = ExitCode.OK if report.passed else ExitCode.DISAGREES
    if common.json:
        print_envelope("smoke", code, result=report, warnings=report.warnings)
    else:
        click.echo(_text(report))
    return code


def _text(report: SmokeReport) -> str:
    lines = [findings_text(report.smoke.findings)]
    if report.gate is not None:
        gate = report.gate
        lines.append(_verdict("quality gate", gate.passed, f"{gate.answers} answers at {gate.levels} at once"))
        for bad in gate.bad:
            why = "; ".join(f"{alarm.kind}: {alarm.evidence}" for alarm in bad.alarms) or bad.failure
            lines.append(f"  {bad.concurrency} at once, {bad.label[:60]!r}: {why}")
        lines += [f"  not steady, {len(each.answers)} answers: {each.label[:60]!r}" for each in gate.differs]
        lines += [f"  -> {line}" for line in gate.hint.splitlines()]
    if report.churn is not None:
        churn = report.churn
        told = f"the same answer {churn.asked} times while {churn.came} came and {churn.left} left"
        lines.append(_verdict("churn", churn.passed, told if churn.passed else "the steady answer changed"))
        lines += [f"  another answer: {text[:100]!r}" for text in churn.other_answers]
        lines += [f"  {failure}" for failure in churn.failures]
    if report.deep is not None:
        deep = report.deep
        told = deep.failure or f"{deep.prompt_tokens} tokens, first token after {deep.ttft_s or 0:.2f} s"
        told += "" if deep.failure or deep.prefill_tps is None else f" ({deep.prefill_tps:.0f} prompt tokens a second)"
        told += f", published {deep.published_ttft_s:.0f} s" if deep.published_ttft_s and not deep.failure else ""
        told += "" if deep.failure or deep.found else f"; the beginning was not known at the end: {deep.answer[:80]!r}"
        lines.append(_verdict("deep prompt", deep.passed, told))
    lines += [f"kept: {record}" for record in report.records]
    return "\n".join(lines)


def _verdict(name: str, passed: bool, told: str) -> str:
    mark = click.style("[OK]", fg="green") if passed else click.style("[FAIL]", fg="red")
    return f"{mark}{'   ' if passed else ' '}{name}: {told}"
