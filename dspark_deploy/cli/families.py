"""`dspark families`."""

from __future__ import annotations

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import broken_lines, columns, values_text
from dspark_deploy.errors import ExitCode


@click.command(short_help="List the image families, or show one.")
@click.argument("name", required=False)
@common_options
def families(common: Common, name: str | None) -> int:
    """List the image families, or show one: NAME, or a file.

    A family is a runtime image's layout and switches: where vLLM lies in it, which variables and flags it knows, and
    what it can't boot with. `dspark up --family NAME` runs a profile on another one.
    """
    from dspark_deploy.flow.catalogue import list_families, show_family

    wish = common.wish()
    if name is None:
        listing = list_families(wish)
        if common.json:
            print_envelope("families", ExitCode.OK, result=listing.lines, warnings=broken_lines(listing.broken))
        else:
            rows = [("FAMILY", "IMAGE", "TITLE"), *((each.name, each.image, each.title) for each in listing.lines)]
            click.echo("\n".join((columns(rows), *broken_lines(listing.broken))))
        return ExitCode.OK
    detail = show_family(wish, name)
    if common.json:
        print_envelope("families", ExitCode.OK, result=detail)
    else:
        click.echo(values_text(f"{detail.name} ({detail.file})", detail.values))
    return ExitCode.OK
