"""`dspark bench decode` and `dspark bench sweep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.measured import numbers, overhead_text, share, table_text
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.values import duration
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.bench import BenchReport


@click.group(short_help="How fast is what is served?")
def bench() -> None:
    """Measure what the pair serves, as the published figures were measured, and keep it for `dspark report`."""


@bench.command(short_help="Decode rates, by the published method.")
@click.option(
    "-c", "--concurrency", type=numbers, help="Requests at once: 1,2,4 or 1-6. Default: 1 to the profile's, at most 6."
)
@click.option("--trials", type=click.IntRange(1, 100), default=3, show_default=True, help="Of each; the median counts.")
@click.option("--tokens", type=click.IntRange(8), default=512, show_default=True, help="Output tokens of each request.")
@click.option(
    "--arrivals",
    type=click.Choice(["static", "staggered"]),
    default="static",
    show_default=True,
    help="All at once, or one after the other.",
)
@click.option(
    "--stagger",
    type=duration,
    default="500ms",
    show_default=True,
    metavar="DURATION",
    help="Between two staggered ones.",
)
@click.option("--expect", metavar="PROFILE", help="Set the result beside what was published for this profile.")
@click.option("--band", type=share, default="10%", show_default=True, help="What still counts as no drift.")
@common_options
def decode(
    common: Common,
    concurrency: tuple[int, ...] | None,
    trials: int,
    tokens: int,
    arrivals: str,
    stagger: float,
    expect: str | None,
    band: float,
) -> int:
    """Decode rates: streamed, temperature 0, a nonce in each prompt; prefill and the first token are left out.

    Tokens are the server's count. Each trial's share of accepted draft tokens comes from the server's counters.

    Exit 0 whatever the rates are, also beyond the band of --expect; 8 when nothing serves or nothing could be measured.
    """
    from dspark_deploy.flow.bench import run_decode
    from dspark_deploy.measure.bench_decode import Method
    from dspark_deploy.remote.clock import Interruption, SystemClock

    method = Method(concurrency or (), trials, tokens, "staggered" if arrivals == "staggered" else "static", stagger)
    with Interruption() as interruption:
        clock = SystemClock(interruption)
        report = run_decode(common.wish(), method, Narrator(quiet=common.quiet), clock, expect=expect, band=band)
    measured = any(lane.median is not None for lane in report.measurement.result.lanes)
    return _show(common, "bench decode", report, measured=measured)


@bench.command(short_help="Prompt length by concurrency.")
@click.option("--prompts", type=numbers, help="Prompt lengths in tokens. Default: 256,2048,8192,32768,131072.")
@click.option("-c", "--concurrency", type=numbers, default="1,2,4,6", show_default=True, help="Requests at once.")
@click.option("--trials", type=click.IntRange(1, 100), default=3, show_default=True, help="Of each cell.")
@click.option("--tokens", type=click.IntRange(8), default=512, show_default=True, help="Output tokens of each request.")
@click.option(
    "--cool-down", type=duration, default="2s", show_default=True, metavar="DURATION", help="Between two trials."
)
@click.option(
    "--limit",
    type=duration,
    default="30m",
    show_default=True,
    metavar="DURATION",
    help="Of one trial; then it is kept as unfinished.",
)
@click.option(
    "--resume", is_flag=False, flag_value="", metavar="[RUN]", help="Go on with the latest unfinished sweep, or RUN."
)
@common_options
def sweep(
    common: Common,
    prompts: tuple[int, ...] | None,
    concurrency: tuple[int, ...],
    trials: int,
    tokens: int,
    cool_down: float,
    limit: float,
    resume: str | None,
) -> int:
    """TTFT, prefill, decode and aggregate rate for each prompt length with each number of requests at once.

    Prompts have an exact number of tokens, counted by the server, and beginnings of their own, so that no cache helps.
    Says beforehand how long it takes. Every cell is kept as soon as it is measured: Ctrl-C loses one at most, and
    --resume goes on.

    Exit 8 when nothing serves or nothing could be measured.
    """
    from dspark_deploy.flow.bench import run_sweep
    from dspark_deploy.measure.sweep import PROMPTS, Plan
    from dspark_deploy.remote.clock import Interruption, SystemClock

    plan = Plan(prompts or PROMPTS, concurrency, trials, tokens, cool_down, limit)
    with Interruption() as interruption:
        report = run_sweep(common.wish(), plan, Narrator(quiet=common.quiet), SystemClock(interruption), resume=resume)
    measured = any(cell.ttft_s is not None for cell in report.measurement.result.cells)
    return _show(common, "bench sweep", report, measured=measured)


def _show(common: Common, command: str, report: BenchReport, *, measured: bool) -> int:
    from dspark_deploy.measure.report.tables import drift_text, table_of

    code = ExitCode.OK if measured else ExitCode.NOT_AS_WANTED
    measurement = report.measurement
    if common.json:
        print_envelope(command, code, result=report, warnings=measurement.warnings)
        return code
    click.echo(table_text(table_of(measurement)))
    if beside := drift_text(measurement.result):
        click.echo(beside)
    for trend in report.trends:
        mark = click.style("[OK]  ", fg="green") if trend.as_expected else click.style("[WARN]", fg="yellow")
        click.echo(f"{mark} {trend.message}")
    if cost := overhead_text(measurement.overhead, measurement.tally):
        click.echo(cost)
    if report.record:
        click.echo(f"kept: {report.record}")
    return code
