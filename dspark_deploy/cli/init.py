"""`dspark init`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.findings import findings_text
from dspark_deploy.cli.narrator import Narrator
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import columns
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.flow.init import InitReport

NODES = 2
MARKS = {"taken": "->", "same": "=", "derived": ".", "left-out": "x"}


@click.command(short_help="Look at two nodes and write an inventory.")
@click.argument("hosts", nargs=-1, metavar="[HEAD WORKER]")
@click.option(
    "--from-env",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Take over an env file of upstream's scripts (.env.dspark).",
)
@click.option("--name", default="spark-pair", show_default=True, help="What the pair is called.")
@click.option("--api-port", type=click.IntRange(1, 65535), help="Port of the API on the head. Default: 8888.")
@click.option("--force", is_flag=True, help="Write over an inventory that is there.")
@click.option("-n", "--dry-run", is_flag=True, help="Show the inventory and write nothing.")
@common_options
def init(
    common: Common,
    hosts: tuple[str, ...],
    from_env: Path | None,
    name: str,
    api_port: int | None,
    force: bool,
    dry_run: bool,
) -> int:
    """Look at two nodes and write an inventory with which `up` starts them.

    HEAD and WORKER are aliases of your ssh config, user@host:port, or local. Both are read, nothing on them is changed:
    which interfaces face each other (by subnet, by link, and by a datagram each way), which HCAs lie beneath, where
    the caches are, which images are there. The inventory says for each value why it was chosen.

    \b
      dspark init spark-a spark-b                    look at both, write inventory.yaml
      dspark init --from-env .env.dspark             take over upstream's settings, ask no node
      dspark init spark-a spark-b --from-env FILE    both: what the nodes contradict is left out

    Of an env file every line is accounted for; nothing in it is run. Where it serves otherwise than the nearest
    published profile, a profile of its own goes into ./profiles. Exit 3, with what to plug in or to configure, where
    nothing joins the nodes.
    """
    from dspark_deploy.flow.init import Asked, initialise
    from dspark_deploy.remote.clock import Interruption, SystemClock

    if len(hosts) not in {0, NODES} or not (hosts or from_env):
        raise click.UsageError("give both hosts, HEAD and WORKER, or --from-env FILE, or all three")
    asked = Asked((hosts[0], hosts[1]) if hosts else None, from_env, name, force, dry_run, api_port)
    with Interruption() as interruption:
        report = initialise(common.wish(), asked, Narrator(quiet=common.quiet), SystemClock(interruption))
    if common.json:
        print_envelope("init", ExitCode.OK, result=report, warnings=report.warnings)
    else:
        click.echo("\n".join(_lines(report)))
    return ExitCode.OK


def _lines(report: InitReport) -> Iterator[str]:
    if report.keys:
        rows = [(MARKS[key.fate], f"line {key.line}", key.name or "?", key.to, key.why) for key in report.keys]
        yield columns(rows)
        yield "-> taken over   = already so   . nobody has to say it   x left out"
        yield ""
    if report.written:
        yield columns(
            [
                (
                    f"  {each.key}",
                    "null" if each.value is None else str(each.value),
                    f"# {each.why}" if each.why else "",
                )
                for each in report.choices
            ]
        )
    else:
        yield from (f"# --- {path}\n{text.rstrip()}\n" for path, text in report.files.items())
    yield ""
    for node, images in report.images.items():
        listed = ", ".join(f"{reference} ({family})" for reference, family in images.items())
        yield f"images on {node}: {listed or 'none of any family'}"
    for warning in report.warnings:
        yield f"{click.style('[WARN]', fg='yellow')} {warning}"
    if report.findings:
        yield findings_text(report.findings)
    yield from (f"{'wrote' if report.written else 'would write'} {name}" for name in report.files)
    if report.written:
        yield "`dspark up -n` shows what a start would do"
