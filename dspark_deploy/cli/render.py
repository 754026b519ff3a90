"""`dspark render`."""

from __future__ import annotations

from pathlib import Path

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.errors import ExitCode


@click.command(short_help="Write both nodes' files, as `up` would push them.")
@click.option(
    "--dir", "directory", required=True, type=click.Path(path_type=Path, file_okay=False), help="Where to write them."
)
@click.option("--family", help="Image family to render for, instead of the profile's own.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change one value of the profile. May be repeated."
)
@common_options
def render(common: Common, directory: Path, family: str | None, overrides: tuple[str, ...]) -> int:
    """Write both nodes' files below DIR, in head/ and worker/, exactly as `up` would push them.

    Needs no node where the inventory says everything: interfaces, addresses, HCAs, and hf_home without ~. Else both
    are asked.
    """
    from dspark_deploy.flow.render import render_files
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        wish = common.wish(family=family, overrides=overrides)
        report = render_files(wish, directory, SystemClock(interruption))
    if common.json:
        print_envelope("render", ExitCode.OK, result=report, warnings=report.warnings)
    else:
        for warning in report.warnings:
            click.echo(f"{click.style('[WARN]', fg='yellow')} {warning}", err=True)
        click.echo(f"release {report.release} (profile {report.profile}, family {report.family}):")
        click.echo("\n".join(f"  {name}" for name in report.files))
    return ExitCode.OK
