"""`dspark history`, with `show` and `export`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import columns
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.history import HistoryReport
    from dspark_deploy.flow.runs import RunReport

LAST_EVENTS = 12  # as text; JSON has more


@click.group(invoke_without_command=True, short_help="Earlier runs, as the nodes tell them.")
@common_options
@click.pass_context
def history(context: click.Context, common: Common) -> int:
    """Who changed the pair, when, to what, and how it ended; and the releases that the nodes keep.

    Read from the nodes, so that every controller sees the same. `dspark rollback` serves an earlier release again.
    What a run left on the machine that it was started on, `show` shows and `export` packs for a report; both ask no
    node.
    """
    context.obj = common
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    from dspark_deploy.flow.history import read_history
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        report = read_history(common.wish(), SystemClock(interruption))
    if common.json:
        print_envelope("history", ExitCode.OK, result=report)
    else:
        click.echo(_text(report))
    return ExitCode.OK


@history.command()
@click.argument("run")
@common_options
def show(common: Common, run: str) -> int:
    """What RUN left on this machine: its steps and their times, what its ranks stated, its last events, its files.

    RUN is an id that `dspark history` lists, the beginning of one, or `last`.
    """
    from dspark_deploy.flow.runs import show_run

    report = show_run(common.wish(), run)
    if common.json:
        print_envelope("history", ExitCode.OK, result=report)
    else:
        click.echo("\n".join(_run(report)))
    return ExitCode.OK


@history.command()
@click.argument("run")
@click.option(
    "--to",
    "archive",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write it, ending in .tar.gz or .tgz. Default: dspark-run-ID.tar.gz in this folder.",
)
@common_options
def export(common: Common, run: str, archive: Path | None) -> int:
    """Pack what RUN left into one archive that can be attached to a report.

    Names of machines and users, addresses, logins and secrets are replaced; the same thing has the same new name in
    every file. Read it before you pass it on all the same.
    """
    from dspark_deploy.flow.export import export_run

    report = export_run(common.wish(), run, archive)
    if common.json:
        print_envelope("history", ExitCode.OK, result=report)
    else:
        click.echo(f"{report.archive}: {report.bytes} bytes, {', '.join(report.files)}")
    return ExitCode.OK


def _text(report: HistoryReport) -> str:
    rows = [("WHEN", "WHO", "COMMAND", "PROFILE", "FAMILY", "RELEASE", "SECONDS", "RUN", "OUTCOME")]
    rows += [
        (
            entry.at,
            entry.who,
            entry.command,
            entry.profile or "-",
            entry.family or "-",
            entry.release or "-",
            f"{sum(entry.seconds.values()):.0f}" if entry.seconds else "-",
            entry.run,
            f"{entry.outcome}: {entry.message}" if entry.message else entry.outcome,
        )
        for entry in report.entries
    ]
    lines = [columns(rows) if report.entries else f"{report.pair}: the nodes tell of no run"]
    lines += [f"kept on {' and '.join(nodes)}: {release}" for release, nodes in report.releases.items()]
    return "\n".join((*lines, *(f"{node}: not reached: {why}" for node, why in report.unreachable.items())))


def _run(report: RunReport) -> Iterator[str]:
    began = f", begun {report.began}" if report.began else ""
    yield f"{report.run}: {report.command or 'a run'} of {report.pair}{began}"
    if report.release:
        yield f"  release   {report.release}" + (f" (profile {report.profile})" if report.profile else "")
    ended = f"{report.outcome}: {report.message}" if report.message else report.outcome
    yield f"  outcome   {ended or 'unknown: it did not live to write one'}"
    for node, figures in report.figures.items():
        yield f"  {node:<8}  {', '.join(f'{name} {value}' for name, value in figures.items())}"
    for node, phases in report.phases.items():
        yield f"  {node:<8}  {', '.join(f'{phase} {seconds:.1f} s' for phase, seconds in phases.items())}"
    if report.seconds:
        yield columns([(f"  {seconds:8.1f} s", step) for step, seconds in report.seconds.items()])
    for finding in report.findings:
        yield f"  [{str(finding.get('status', '?')).upper()}] {finding.get('message', '')}"
    yield from (f"  skipped   {each}" for each in report.skipped)
    for event in report.events[-LAST_EVENTS:]:
        facts = " ".join(f"{name}={value}" for name, value in event.items() if name not in {"at", "event"} and value)
        yield f"  {event.get('at', '')}  {event.get('event', '?')}  {facts}"
    yield f"  files     {', '.join(f'{name} ({size} bytes)' for name, size in report.files.items()) or 'none'}"
    yield f"            in {report.folder}"
    if any(name.endswith(".log") for name in report.files):
        yield f"  -> `dspark explain {report.run}` names the cause in its logs"
