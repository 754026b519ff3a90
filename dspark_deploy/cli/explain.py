"""`dspark explain`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspark_deploy.cli.envelope import print_envelope
from dspark_deploy.cli.options import Common, common_options
from dspark_deploy.cli.text import BAD, GOOD
from dspark_deploy.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from dspark_deploy.boot.diagnosis import Answer, RankBoot
    from dspark_deploy.flow.explain import ExplainReport, LogFile

SHOWN_FIGURES = {
    "kv_gib": "KV cache {} GiB",
    "kv_pool_tokens": "KV pool {:,} tokens",
    "max_concurrency": "{}x concurrency",
    "weights_s": "weights in {} s",
    "version": "vLLM {}",
}


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True), metavar="[FILE [FILE] | RUN]")
@common_options
def explain(common: Common, files: tuple[Path, ...]) -> int:
    """Name the cause in any log of a boot: a file, two files (one of each rank), or what is piped in.

    \b
      dspark explain head.log worker.log
      docker logs vllm-dspark-1 2>&1 | dspark explain
      dspark explain 20260901T101530-a1b2c3      what a run of this machine kept; `last` is the newest

    Needs no inventory and no node: a colleague's log will do, as docker, compose or dspark printed it, packed with gzip
    too. When both ranks failed, the cause is told apart from the other rank's complaint about it. Failures are those
    of docs/failures.md.

    Exit 0 when the log tells how the boot went, 8 when it ended for a reason that no signature knows or holds no boot.
    """
    from dspark_deploy.flow.explain import explain_logs

    report = explain_logs(_sources(_of_run(common, files)))
    code = ExitCode.OK if report.understood else ExitCode.NOT_AS_WANTED
    if common.json:
        print_envelope("explain", code, result=report)
    else:
        click.echo("\n".join(_lines(report)))
    return code


def _of_run(common: Common, files: tuple[Path, ...]) -> tuple[Path, ...]:
    """The logs of a run, where a run or its folder is named; else the files as they are."""
    from dspark_deploy.flow.runs import LOGS, is_run_id, logs_of_run

    if len(files) != 1 or files[0].is_file():
        return files
    (only,) = files
    if not only.is_dir():
        return logs_of_run(common.wish(), str(only)) if is_run_id(str(only)) else files
    kept = tuple(only / name for name in LOGS.values() if (only / name).is_file())
    if not kept:
        raise ConfigError(
            f"{only} is a folder, and holds no {' or '.join(LOGS.values())}",
            remedy="name the log itself, the head's and the worker's, or a run (`dspark history`)",
        )
    return kept


def _sources(files: tuple[Path, ...]) -> list[LogFile]:
    from dspark_deploy.flow.explain import LogFile

    if len(files) > 2 or files.count(Path("-")) > 1:  # noqa: PLR2004  a pair has two ranks
        raise ConfigError(
            f"{len(files)} logs were named: a pair has two, of which one may be standard input",
            remedy="name one log, or the head's and the worker's",
        )
    if not files and sys.stdin.isatty():
        raise ConfigError("no log was named, and nothing is piped in", remedy="name a file, or pipe a log into it")
    dash = Path("-")
    return [LogFile(None, sys.stdin.buffer) if file == dash else LogFile(file) for file in files or (dash,)]


def _lines(report: ExplainReport) -> Iterator[str]:
    yield _headline(report)
    if report.answer:
        yield from _answer(report.answer)
    others = [each for each in report.failures[1:] if each.failure and each.role != "echo"]
    for each in others:
        yield f"also {each.failure} {_place(each)}: {each.means}"
    if echoes := [each for each in report.failures[1:] if each.role == "echo" and each.failure]:
        nodes = " and ".join(dict.fromkeys(f"the {each.node}" for each in echoes if each.node)) or "another part"
        yield f"an echo of it: {nodes} lost the other rank"
    for each in report.warnings:
        yield f"{click.style('[WARN]', fg='yellow')} {each.failure or ''} {_place(each)}: {each.means}"
        yield f"  -> {each.remedy}"
    for rank in report.ranks:
        yield _rank(rank)
    if not report.understood:
        yield from _unknown(report)


def _headline(report: ExplainReport) -> str:
    match report.outcome:
        case "failed":
            return f"{_named(report)}: the boot failed"
        case "unfinished" if report.answer:
            return f"perhaps {_named(report)}: the log ends while the pair boots"
        case "ready":
            return click.style("the boot is healthy: it came up", fg=GOOD)
        case "stopped":
            return "the boot was stopped on request, nothing fatal before that"
        case "unfinished":
            return "nothing fatal so far: the log ends while the pair boots"
        case "no-boot":
            return "no line of this is known: is it the log of a rank?"


def _named(report: ExplainReport) -> str:
    failure = report.answer.failure if report.answer else None
    return click.style(failure or "a failure that no signature knows", fg=BAD, bold=True)


def _answer(answer: Answer) -> Iterator[str]:
    also = f" (the same text as {', '.join(answer.also)})" if answer.also else ""
    yield f"  {_place(answer)}: {answer.means}{also}"
    if answer.text:
        yield f"  | {answer.text}"
    yield f"  -> {answer.remedy}"


def _place(answer: Answer) -> str:
    node = f"on the {answer.node}" if answer.node else "in this log"
    times = f", {answer.count} times" if answer.count > 1 else ""
    return f"{node}, in phase {answer.phase}, line {answer.line}{times}"


def _rank(rank: RankBoot) -> str:
    figures = [text.format(rank.figures[name]) for name, text in SHOWN_FIGURES.items() if _numeric(rank, name, text)]
    state = "ready" if rank.ready else f"reached {rank.phase or 'nothing known'}"
    attempts = f"{rank.attempts} boots, the one that counts " if rank.attempts > 1 else ""
    return f"{rank.node or 'log'}: {attempts}{', '.join((state, *figures))}"


def _numeric(rank: RankBoot, name: str, text: str) -> bool:
    """Whether the figure is there and of the kind that its text formats."""
    return name in rank.figures and ("{:,}" not in text or isinstance(rank.figures[name], int))


def _unknown(report: ExplainReport) -> Iterator[str]:
    from dspark_deploy.flow.explain import unknown_words

    words = unknown_words(report)
    for node, texts in words.items():
        for text in dict.fromkeys(texts):
            yield f"  {node} | {text}"
    if words:
        yield "  -> these are the errors it states; please report the log, so that it gets a signature"
    else:
        yield "  -> give it what `docker logs` or `dspark logs --raw` prints of a rank, from its start on"
