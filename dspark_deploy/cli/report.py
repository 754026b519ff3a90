"""`dspark report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.measured import share
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import columns
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.write_report import Written


@click.command(short_help="What was measured, as a page, plots, CSV and JSON.")
@click.option(
    "--run", metavar="RUN", help="This measurement alone: an id or its beginning. Default: the latest of each kind."
)
@click.option("--against", metavar="RUN", help="Name what got worse since this one: an id, or a measurement.json.")
@click.option(
    "--tolerance", type=share, default="5%", show_default=True, help="What is no regression; noise may allow more."
)
@click.option(
    "--dir", "directory", type=click.Path(path_type=Path, file_okay=False), default="dspark-report", show_default=True
)
@click.option("--list", "listed", is_flag=True, help="List what is kept, and write nothing.")
@common_options
def report(
    common: Common, run: str | None, against: str | None, tolerance: float, directory: Path, listed: bool
) -> int:
    """Write report.html, which holds everything it shows and opens from disk, with its plots as PNG, its figures as CSV
    and JSON: tables and plots beside the published sweep and beside earlier runs. Asks no node.

    --against RUN compares with an earlier run. A figure regressed when it is worse by more than --tolerance and by more
    than the trials of both runs differ among themselves; then the exit code is 7.
    """
    from dspark_deploy.flow.write_report import ReportWish, write_report

    if listed:
        return _list(common)
    written = write_report(common.wish(), ReportWish(run, against, tolerance), directory)
    code = ExitCode.DISAGREES if written.regressed else ExitCode.OK
    if common.json:
        print_envelope("report", code, result=written, warnings=written.warnings)
        return code
    for warning in written.warnings:
        click.echo(f"{click.style('[WARN]', fg='yellow')} {warning}", err=True)
    click.echo(
        "\n".join((f"{written.pair}: {', '.join(written.measurements)}", *(f"  {name}" for name in written.files)))
    )
    if written.against is not None and written.changes:
        click.echo(_against(written))
    return code


def _against(written: Written) -> str:
    if not written.regressed:
        return click.style(f"no figure regressed against {written.against}", fg="green")
    lines = [click.style(f"{len(written.regressed)} figures regressed against {written.against}:", fg="red")]
    for each in written.regressed:
        values = f"{each.before.value:.4g} -> {each.now.value:.4g} {each.now.unit}".rstrip()
        lines.append(
            f"  {each.now.metric}, {each.now.place}: {values}, {each.worse:.1%} worse (allowed {each.allowed:.1%})"
        )
    return "\n".join(lines)


def _list(common: Common) -> int:
    from dspark_deploy.flow.write_report import list_measurements

    kept = list_measurements(common.wish())
    if common.json:
        rows = [
            {"id": each.id, "kind": each.kind, "began": each.began, "release": each.origin.release} for each in kept
        ]
        print_envelope("report", ExitCode.OK, result=rows)
        return ExitCode.OK
    lines = [(each.id, each.kind, each.began, each.origin.profile, each.origin.release) for each in kept]
    click.echo(columns([("MEASUREMENT", "KIND", "BEGAN", "PROFILE", "RELEASE"), *lines]))
    return ExitCode.OK
