"""`dspark profiles`."""

from __future__ import annotations

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import broken_lines, columns, values_text
from dspark_deploy.errors import ExitCode


@click.command(short_help="List the profiles, or show one.")
@click.argument("name", required=False)
@common_options
def profiles(common: Common, name: str | None) -> int:
    """List the profiles, or show one: NAME, or a file.

    A profile says what to serve. Yours go into ./profiles or ~/.config/dspark/profiles; `extends: agent-1m` and the
    values that differ are enough. Shown with `extends` followed and the place each value comes from.
    """
    from dspark_deploy.flow.catalogue import list_profiles, show_profile

    wish = common.wish()
    if name is None:
        listing = list_profiles(wish)
        if common.json:
            print_envelope("profiles", ExitCode.OK, result=listing.lines, warnings=broken_lines(listing.broken))
        else:
            rows = [("PROFILE", "FAMILY", "MODEL", "TOKENS", "SEQS", "TITLE")]
            rows += [
                (
                    " = ".join((each.name, *each.aliases)),
                    each.family,
                    each.model,
                    str(each.max_model_len),
                    str(each.max_num_seqs),
                    each.title,
                )
                for each in listing.lines
            ]
            click.echo("\n".join((columns(rows), *broken_lines(listing.broken))))
        return ExitCode.OK
    detail = show_profile(wish, name)
    if common.json:
        print_envelope("profiles", ExitCode.OK, result=detail)
    else:
        click.echo(values_text(f"{detail.name} ({detail.file})", detail.values, detail.sources))
    return ExitCode.OK
