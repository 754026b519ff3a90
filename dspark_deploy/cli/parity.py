"""`dspark parity`."""

from __future__ import annotations

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.findings import findings_text
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.errors import ExitCode


@click.command(short_help="Do the two ranks that run agree?")
@common_options
def parity(common: Common) -> int:
    """Hold the two ranks that run against each other: vLLM serves in silence with ranks that differ.

    Compared are the images' content, the command lines, the environments (but for what is each rank's own), what is
    mounted, every mounted file as its container sees it and against the release that was pushed, every file of the vllm
    package in both containers, and how these were prepared. Changes nothing; `dspark status` tells when it last held.

    Exit 0 when they agree, 7 when they differ, 8 when not both run, 5 when a node can't be reached.
    """
    from dspark_deploy.flow.parity import compare_ranks
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        report = compare_ranks(common.wish(), SystemClock(interruption))
    code = ExitCode.OK if report.agree else ExitCode.DISAGREES
    if common.json:
        print_envelope("parity", code, result=report, warnings=report.warnings)
        return code
    verdict = click.style("the ranks agree", fg="green") if report.agree else click.style("the ranks differ", fg="red")
    click.echo(f"{report.pair}: {verdict}")
    click.echo(findings_text(report.findings))
    for warning in report.warnings:
        click.echo(f"{click.style('[WARN]', fg='yellow')} {warning}", err=True)
    return code
