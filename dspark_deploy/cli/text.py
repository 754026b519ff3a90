"""Reports as lines for people: one fact a line, nothing cut off, readable without colour."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from dspark_deploy.cli.status_rows import rank_sentence

if TYPE_CHECKING:
    from dspark_deploy.errors import DsparkError
    from dspark_deploy.flow.down import DownReport
    from dspark_deploy.flow.report import PairReport
    from dspark_deploy.flow.up import PlanReport

GOOD, BAD = "green", "red"


def error_text(error: DsparkError) -> str:
    """Three lines: what happened, why, what to do. `why` may hold several lines of its own."""
    lines = [f"{click.style('error:', fg=BAD)} {error.message}"]
    if error.why:
        first, *rest = error.why.splitlines()
        lines += [f"  why: {first}", *(f"       {line}" for line in rest)]
    lines.append(f"  -> {error.remedy}")
    return "\n".join(lines)


def served_text(report: PairReport) -> str:
    """The end of `up`: the pair, what was let pass, and how to call it."""
    skipped = (f"  {click.style('skipped', fg=BAD)}   {each}" for each in report.skipped)
    return "\n".join((*_pair(report), *skipped, *_how_to_call(report)))


def down_text(report: DownReport) -> str:
    """What `down` ended."""
    lines = []
    for node in report.nodes:
        if node.problem:
            lines += [f"{node.node}: {click.style(node.problem, fg=BAD)}", f"  -> {node.remedy}"]
        elif node.stopped:
            lines.append(f"{node.node}: stopped {', '.join(node.stopped)}; nothing of {report.pair} is left")
        else:
            lines.append(f"{node.node}: nothing to stop")
        lines += [f"  {click.style('left', fg=BAD)}   {each}" for each in node.left]
    return "\n".join(lines)


def plan_text(plan: PlanReport) -> str:
    """A plan: the steps, what differs in the files, and every value that did not come from its usual place."""
    what = "would take these steps" if plan.changes else "would change nothing, only wait and prove"
    diffs = (f"{node}:\n{_coloured(diff.rstrip())}" for node, diff in plan.diffs.items() if diff)
    return "\n".join(
        (
            f"{what} (profile {plan.profile}, family {plan.family}, release {plan.release}):",
            *(f"  {number}. {step}" for number, step in enumerate(plan.steps, 1)),
            *(f"override: {each}" for each in plan.overrides),
            *(f"[WARN] {each}" for each in plan.warnings),
            *([f"ends release {plan.ends}: {plan.downtime}"] if plan.ends else []),
            *diffs,
        )
    )


def _pair(report: PairReport) -> Iterator[str]:
    colour = GOOD if report.state == "serving" else BAD
    yield f"{report.pair}: {click.style(str(report.state), fg=colour, bold=True)}"
    if report.profile:
        yield f"  profile   {report.profile} (family {report.family})"
    if report.release:
        yield f"  release   {report.release}"
    if report.base_url:
        yield f"  API       {report.base_url}"
    if report.served_name:
        yield f"  model     {report.served_name}, {report.max_model_len} tokens"
    for rank in report.ranks:
        yield f"  {rank.node:<8}  {rank_sentence(rank)}"
    if report.detail and (report.state != "serving" or report.owed):
        yield f"  -> {report.detail}"


def _how_to_call(report: PairReport) -> Iterator[str]:
    body = json.dumps({"model": report.served_name, "messages": [{"role": "user", "content": "Hello"}]})
    yield ""
    key = "the pair's API key" if report.keyed else "any API key"
    header = ' -H "Authorization: Bearer $KEY"' if report.keyed else ""
    yield f"OpenAI clients: base URL {report.base_url}, model {report.served_name}, {key}"
    if report.keyed:
        yield "  KEY=$(cat FILE)    # the file that api.key_file names; or KEY=$DSPARK_API_KEY"
    yield f"  curl -s {report.base_url}/chat/completions{header} -H 'Content-Type: application/json' -d '{body}'"
    if report.answers_from_here is False:
        yield "From this machine that address does not answer: call it from where the head can be reached,"
        yield "  or set api.bind in the inventory to an address of the head that clients reach."


def _coloured(diff: str) -> str:
    colours = {"+": GOOD, "-": BAD, "@": "cyan"}
    return "\n".join(click.style(line, fg=colours.get(line[:1])) for line in diff.splitlines())


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows under each other; nothing is cut, the last column may be as long as it likes."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def broken_lines(broken: Mapping[str, DsparkError]) -> list[str]:
    """Data files that can't be read, by name, under a list of those that can."""
    return [f"{name} is broken: {each.message} -> {each.remedy}" for name, each in broken.items()]


def values_text(title: str, values: Mapping[str, Any], sources: Mapping[str, str] | None = None) -> str:
    """One value a line, entries of a mapping as `key.entry`, each with its source where one is known."""
    rows = []
    for key, value in _flat(values):
        source = (sources or {}).get(key, "")
        rows.append((f"  {key}", json.dumps(value, ensure_ascii=False), f"# {source}" if source else ""))
    return f"{title}\n{columns(rows)}"


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from ((f"{key}.{entry}", item) for entry, item in value.items())
        else:
            yield key, value
