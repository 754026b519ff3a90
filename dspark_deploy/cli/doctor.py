"""`dspark doctor`."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.findings import findings_text
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import error_text
from dspark_deploy.errors import ExitCode

if TYPE_CHECKING:
    from dspark_deploy.checks.finding import Finding, Status
    from dspark_deploy.flow.doctor import DoctorReport
    from dspark_deploy.flow.wish import Wish

WORDS: dict[Status, str] = {"fail": "failed", "warn": "doubtful", "skip": "not told", "ok": "good"}
WORST_FIRST = tuple(WORDS)


@click.command(short_help="All checks, and nothing changed.")
@click.option("--family", help="Image family to check for, instead of the profile's own.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change one value of the profile. May be repeated."
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep what both nodes told in DIR, without names and secrets, to attach it to a report.",
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Judge what was recorded in DIR; no node is asked.",
)
@common_options
def doctor(
    common: Common, family: str | None, overrides: tuple[str, ...], record: Path | None, replay: Path | None
) -> int:
    """Check both nodes for everything that could keep the pair from starting, and change nothing.

    Reads each node once and judges docker, GPU, memory, image, caches, disks, the fabric, ports and what runs there;
    with a profile (-p, or the inventory's) also what that profile needs. `dspark up` runs the same checks. An image
    that was not looked into yet is looked into by way of a container that is made, never started, and removed.

    Exit 0 when nothing failed, 3 when something did, 5 when a node can't be reached (the other is checked).
    """
    if record is not None and replay is not None:
        raise click.UsageError("--record and --replay exclude each other")
    report = _examine(common.wish(family=family, overrides=overrides), record, replay)
    code = ExitCode.OK if report.healthy else ExitCode.REFUSED
    if report.unreachable:
        code = ExitCode.UNREACHABLE
    if common.json:
        result = {name: getattr(report, name) for name in report.__dataclass_fields__ if name != "unreachable"}
        print_envelope("doctor", code, result=result, warnings=report.warnings, errors=report.unreachable)
        for error in report.unreachable:
            click.echo(error_text(error), err=True)
    else:
        click.echo(report_text(report))  # whose first findings are the nodes that were not reached
    return code


def _examine(wish: Wish, record: Path | None, replay: Path | None) -> DoctorReport:
    from dspark_deploy.flow.doctor import examine, examine_recorded
    from dspark_deploy.remote.clock import Interruption, SystemClock

    with Interruption() as interruption:
        clock = SystemClock(interruption)
        if replay is not None:
            return examine_recorded(wish, replay, clock)
        return examine(wish, clock, directory=record)


def report_text(report: DoctorReport) -> str:
    """Groups of findings, those with failures first, then what could not be read, then the sum."""
    served = f", profile {report.profile} (family {report.family}, {report.image})" if report.profile else ""
    lines = [f"{report.pair}{served}"]
    for group, findings in _groups(report.findings):
        lines += ["", click.style(group, bold=True), findings_text(findings)]
    unread = [f"[--]   {node}: {what}: {why}" for node, each in report.unread.items() for what, why in each.items()]
    if unread:
        lines += ["", click.style("not read", bold=True), *unread]
    if report.warnings:
        lines += ["", click.style("profile", bold=True), *(f"[WARN] {warning}" for warning in report.warnings)]
    counted = Counter(finding.status for finding in report.findings)
    told = ", ".join(f"{counted[status]} {WORDS[status]}" for status in WORST_FIRST if counted[status])
    lines += ["", f"{told}"]
    if report.recorded:
        lines.append(f"recorded: {', '.join(report.recorded)}")
    return "\n".join(lines)


def _groups(findings: tuple[Finding, ...]) -> list[tuple[str, list[Finding]]]:
    """Each group with its findings, both with the worst first, else in the checks' own order."""
    order = list(dict.fromkeys(finding.group for finding in findings))
    ranked = sorted(findings, key=lambda each: (order.index(each.group), WORST_FIRST.index(each.status)))
    grouped = [(group, list(each)) for group, each in groupby(ranked, key=lambda finding: finding.group)]
    return sorted(grouped, key=lambda each: WORST_FIRST.index(each[1][0].status))
