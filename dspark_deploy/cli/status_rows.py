"""`status` as rows, a label and a sentence each: text and the frames of `status --watch` are made of the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dspark_deploy.facts.patches import failed

if TYPE_CHECKING:
    from dspark_deploy.flow.report import RankReport, StatusReport
    from dspark_deploy.plan.trouble import Trouble
    from dspark_deploy.watch.metrics import Load

Tone = Literal["", "good", "bad", "warn"]
MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Row:
    """One line. An empty label goes on with the row above."""

    label: str
    text: str
    tone: Tone = ""


def headline(report: StatusReport) -> Row:
    """The pair and its word."""
    return Row(report.pair, str(report.state), "good" if report.state == "serving" else "bad")


def status_rows(report: StatusReport) -> Iterator[Row]:
    """Everything below the headline."""
    if report.stand_in:
        yield Row("stand-in", f"what answers is no engine but a rehearsal's stand-in ({report.stand_in})", "warn")
    yield from _what(report)
    for rank in report.ranks:
        yield from _rank(rank)
    yield from _parity(report)
    if report.load is not None:
        yield from _load(report.load)
    if report.generation is not None and report.generation.verdict == "generates":  # all else is told further below
        yield Row("tokens", report.generation.detail, "good")
    for each in report.costly:
        place = f" on the {each.node}" if each.node else ""
        yield Row("[WARN]", f"{each.failure or each.signature}{place}: {each.means}", "warn")
        yield Row("", f"-> {each.remedy}")
    for node, outcomes in report.patches.items():
        yield from (Row("[WARN]", f"on the {node}: {each}", "warn") for each in failed(outcomes))
    for what, why in report.untold.items():
        yield Row("[--]", f"{what} could not be read: {why}")
    for trouble in report.troubles:
        yield from _trouble(trouble)
    yield from _detail(report)


def lasting(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 12 min`, `2 d 4 h`: the two largest units."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE:.0f} min"
    if seconds < DAY:
        return f"{seconds // HOUR:.0f} h {seconds % HOUR // MINUTE:.0f} min"
    return f"{seconds // DAY:.0f} d {seconds % DAY // HOUR:.0f} h"


def _what(report: StatusReport) -> Iterator[Row]:
    if report.profile:
        yield Row("profile", f"{report.profile} (family {report.family})")
    if report.release:
        yield Row("release", report.release)
    if report.base_url:
        version = f" (vLLM {report.version})" if report.version else ""
        yield Row("API", f"{report.base_url}{version}")
    if report.served_name:
        yield Row("model", f"{report.served_name}, {report.max_model_len} tokens")


def _rank(rank: RankReport) -> Iterator[Row]:
    if rank.state == "unreachable":  # why stands with the trouble
        yield Row(rank.node, f"rank {rank.rank} can't be asked", "bad")
        return
    yield Row(rank.node, rank_sentence(rank), "" if rank.state == "running" else "bad")
    if rank.gpu is not None and rank.gpu.usable is not None:
        word = "usable" if rank.gpu.usable else "NOT usable"
        yield Row("", f"GPU {word} in the container: {rank.gpu.detail}", "" if rank.gpu.usable else "bad")
    elif rank.gpu is not None:
        yield Row("", f"whether the GPU is usable in the container can't be told: {rank.gpu.detail}")
    if rank.image_as_tagged is False:
        yield Row("", "its image is not the one that the release's tag names on that node now", "warn")
    kept = [f"model hashed {rank.cache.at[:19]}Z: {rank.cache.verdict}"] if rank.cache else []
    kept += [f"came up well {rank.good_at[:19]}Z"] if rank.good_at else []
    kept += ["image as tagged"] if rank.image_as_tagged else []
    if kept:
        yield Row("", ", ".join(kept), "bad" if rank.cache and rank.cache.verdict == "corrupt" else "")


def rank_sentence(rank: RankReport) -> str:
    """One rank's container in a sentence."""
    if rank.container is None:
        return f"rank {rank.rank} {rank.state}" + (f": {rank.detail}" if rank.detail else "")
    parts = [f"rank {rank.rank} {rank.state}"]
    if rank.exit_code is not None:
        parts.append(f"with exit code {rank.exit_code}")
    if rank.finished_at:
        parts.append(f"since {rank.finished_at[:19]}Z,")
    if rank.started_at:
        word = "since" if rank.state == "running" else "started"
        parts.append(f"{word} {rank.started_at[:19]}Z")
    if rank.uptime_s is not None:
        parts.append(f"({lasting(rank.uptime_s)})")
    if rank.restarts:
        parts.append(f"({rank.restarts} restarts)")
    parts.append(f"in {rank.container}")
    if rank.detail:
        parts.append(f"({rank.detail})")
    return " ".join(parts)


def _parity(report: StatusReport) -> Iterator[Row]:
    if report.differed_at:
        yield Row("parity", f"the ranks were found to differ at {report.differed_at[:19]}Z: see `dspark parity`", "bad")
    elif report.agreed_at:
        yield Row("parity", f"the ranks agreed when they were compared at {report.agreed_at[:19]}Z")


def _load(load: Load) -> Iterator[Row]:
    pool = f"KV pool {100 * load.kv_usage:.1f} % held, {load.preemptions} preemptions"
    yield Row("requests", f"{load.running} running, {load.waiting} waiting; {pool}", "warn" if load.waiting else "")
    if load.prompt_tps is not None and load.generation_tps is not None:
        yield Row(
            "speed",
            f"prompt {load.prompt_tps:,.1f} tokens/s, output {load.generation_tps:,.1f} tokens/s"
            f" (over {load.over_s:.1f} s)",
        )
    if load.acceptance is not None:
        since = " since the server's start" if load.acceptance_since_start else ""
        yield Row("drafts", f"{100 * load.acceptance:.1f} % accepted, {load.accepted_per_draft:.2f} a draft{since}")


def _trouble(trouble: Trouble) -> Iterator[Row]:
    where = f"the {trouble.node}" if trouble.node else "the pair"
    since = f", since {trouble.since[:19]}Z" if trouble.since else ""
    yield Row("trouble", f"{where}{since}", "bad")
    for fact in trouble.facts:
        yield Row("", fact)
    yield Row("", f"-> {trouble.remedy}")


def _detail(report: StatusReport) -> Iterator[Row]:
    """What the rows above do not say."""
    if report.detail and (report.owed or (report.state != "serving" and not report.troubles)):
        yield Row("", f"-> {report.detail}")
