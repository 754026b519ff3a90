"""A measurement's figures as tables: the same ones for the page, the terminal and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dspark_deploy.measure.churn import ChurnResult
from dspark_deploy.measure.compare import Comparison
from dspark_deploy.measure.deep import DeepResult
from dspark_deploy.measure.figures import Change, figures_of
from dspark_deploy.measure.gate import GateResult
from dspark_deploy.measure.store import DecodeResult, Measurement, Origin, SmokeResult, SweepResult

NOTHING = "-"
_QUOTED = 160  # characters of an answer in a table


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads that carry the units. `first` columns are text, the others numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: int = 1


def table_of(measurement: Measurement[Any]) -> Table:  # noqa: PLR0911  one arm a kind
    """Every kind's own."""
    match measurement.result:
        case DecodeResult() as result:
            return _decode(result)
        case SweepResult() as result:
            return _sweep(result)
        case SmokeResult() as result:
            return _smoke(result)
        case GateResult() as result:
            return _gate(result)
        case ChurnResult() as result:
            return _churn(result)
        case DeepResult() as result:
            return _deep(result)
        case Comparison() as result:
            return _compare(result)
        case _:
            raise AssertionError(f"no table for {measurement.kind}")


def origin_table(origin: Origin) -> Table:
    """What produced it."""
    rows = [
        ("profile", origin.profile),
        ("image family", origin.family),
        ("model", f"{origin.model}, served as {origin.served_name}"),
        ("length and sequences", f"{origin.max_model_len} tokens, {origin.max_num_seqs or 'unknown'} at once"),
        ("KV pool", f"{origin.kv_pool_tokens} tokens" if origin.kv_pool_tokens else "unknown"),
        ("image", origin.image),
        *((f"image id, {node}", each) for node, each in origin.image_ids.items()),
        ("release", origin.release),
        ("server", f"vLLM {origin.server_version}" if origin.server_version else "unknown"),
        ("dspark", origin.dspark_version),
        *(
            (node, ", ".join(f"{name} {value}" for name, value in facts.items()))
            for node, facts in origin.facts.items()
        ),
    ]
    return Table("What produced it", ("what", "value"), tuple(rows), 2)


def drift_text(result: object) -> str:
    """One sentence on decode rates that were set beside published ones; empty for anything else."""
    if not isinstance(result, DecodeResult) or result.band is None:
        return ""
    beyond = [f"{each.drift:+.1%} at {each.concurrency} at once" for each in result.drift if each.within is False]
    told = any(each.within is not None for each in result.drift)
    verdict = "drift: " + ", ".join(beyond) if beyond else "no drift" if told else "nothing published to set it beside"
    return f"{verdict} (beside {result.expected}, {result.expected_source}; within {result.band:.0%} is no drift)"


def change_table(changes: Sequence[Change]) -> Table:
    """Two measurements beside each other, what regressed first."""
    heads = ("figure", "at", "verdict", "before", "now", "change", "allowed")
    ordered = sorted(changes, key=lambda each: (not each.regressed, -each.worse))
    rows = tuple(
        (
            each.now.metric,
            each.now.place,
            "regressed" if each.regressed else "within",
            f"{each.before.value:.4g}",
            f"{each.now.value:.4g}",
            f"{each.now.value / each.before.value - 1:+.1%}",
            f"±{each.allowed:.1%}",
        )
        for each in ordered
    )
    return Table("Against the earlier run", heads, rows, 3)


def to_csv(measurements: Iterable[Measurement[Any]]) -> str:
    """Every figure of all of them, one a row, with what it belongs to."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        (
            "measurement",
            "began",
            "profile",
            "release",
            "metric",
            "prompt_tokens",
            "concurrency",
            "value",
            "unit",
            "noise",
        )
    )
    for each in measurements:
        for figure in figures_of(each):
            writer.writerow(
                (
                    each.id,
                    each.began,
                    each.origin.profile,
                    each.origin.release,
                    figure.metric,
                    "" if figure.prompt is None else figure.prompt,
                    figure.concurrency,
                    f"{figure.value:.6g}",
                    figure.unit,
                    f"{figure.noise:.4f}",
                )
            )
    return text.getvalue()


def _decode(result: DecodeResult) -> Table:
    heads = ["at once", "trials in tok/s", "aggregate in tok/s", "stream in tok/s", "window in s", "tokens", "accepted"]
    drift = {each.concurrency: each for each in result.drift}
    heads += [f"published ({result.expected})", "drift"] if result.drift else []
    rows = []
    for lane in result.lanes:
        trial = lane.median
        row = [str(lane.concurrency), ", ".join(f"{each.aggregate_tps:.1f}" for each in lane.trials)]
        row += [
            _number(trial.aggregate_tps if trial else None),
            _number(trial.mean_stream_tps if trial else None),
            _number(trial.window_s if trial else None, 2),
            str(trial.tokens) if trial else NOTHING,
            f"{trial.acceptance.rate:.1%}" if trial and trial.acceptance else NOTHING,
        ]
        if result.drift:
            row += list(_drift(drift[lane.concurrency]))
        rows.append(tuple(row))
    return Table("Decode", tuple(heads), tuple(rows), 2)


def _drift(drift: Any) -> Iterator[str]:
    low_high = drift.published_tps
    yield NOTHING if low_high is None else " to ".join(f"{each:g}" for each in dict.fromkeys(low_high))
    if drift.drift is None:
        yield NOTHING
    else:
        yield f"{drift.drift:+.1%} {'within' if drift.within else 'DRIFT'}"


def _sweep(result: SweepResult) -> Table:
    heads = (
        "prompt",
        "at once",
        "TTFT in s",
        "p95 in s",
        "prefill in tok/s",
        "decode in tok/s",
        "aggregate in tok/s",
        "failed",
    )
    rows = tuple(
        (
            str(cell.prompt),
            str(cell.concurrency),
            _number(cell.ttft_s, 2),
            _number(cell.ttft_p95_s, 2),
            _number(cell.prefill_tps, 0),
            _number(cell.decode_tps),
            _number(cell.aggregate_tps),
            f"{len(cell.failures)}{', unfinished' if cell.unfinished else ''}",
        )
        for cell in result.cells
    )
    return Table("Sweep", heads, rows, 0)


def _smoke(result: SmokeResult) -> Table:
    pairs = zip(result.findings, result.seconds, strict=True)
    rows = tuple((str(found.status), found.message, f"{seconds:.2f}") for found, seconds in pairs)
    return Table("Smoke", ("verdict", "what", "s"), rows, 2)


def _churn(result: ChurnResult) -> Table:
    told = [
        ("asked", str(result.asked)),
        ("others came", str(result.came)),
        ("of them left early", str(result.left)),
        ("passed", _yes(result.passed)),
    ]
    told += [("another answer", text[:_QUOTED]) for text in result.other_answers]
    return Table("Churn", ("what", "value"), tuple(told), 2)


def _deep(result: DeepResult) -> Table:
    told = (
        ("prompt tokens", str(result.prompt_tokens or NOTHING)),
        ("TTFT in s", _number(result.ttft_s, 2)),
        ("TTFT in s by the published sweep", _number(result.published_ttft_s, 2)),
        ("prefill in tok/s", _number(result.prefill_tps)),
        ("its beginning is known at its end", _yes(result.found)),
    )
    return Table("One deep prompt", ("what", "value"), told, 2)


def _gate(result: GateResult) -> Table:
    told = [
        ("answers", f"{result.answers} at {', '.join(map(str, result.levels))} at once"),
        ("verdict", "passed" if result.passed else f"{len(result.bad)} bad, {len(result.differs)} not steady"),
        ("hint", result.hint),
    ]
    for bad in result.bad:
        why = "; ".join(f"{alarm.kind}: {alarm.evidence}" for alarm in bad.alarms) or bad.failure
        told.append((f"{bad.label[:60]} ({bad.concurrency} at once)", why[:_QUOTED]))
    told += [(f"{each.label[:60]}, not steady", f"{len(each.answers)} different answers") for each in result.differs]
    return Table("Quality gate", ("what", "value"), tuple(told), 2)


def _compare(result: Comparison) -> Table:
    heads = (
        "question",
        "the pair",
        f"{result.other}",
        "same",
        "tokens, pair",
        "tokens, other",
        "tok/s, pair",
        "tok/s, other",
    )
    rows = tuple(
        (
            each.question,
            each.pair.text[:_QUOTED],
            each.other.text[:_QUOTED],
            _yes(each.same),
            str(each.pair.completion_tokens or NOTHING),
            str(each.other.completion_tokens or NOTHING),
            _number(each.pair.decode_tps),
            _number(each.other.decode_tps),
        )
        for each in result.pairings
    )
    return Table(f"Comparison: {result.verdict}", heads, rows, 4)


def _number(value: float | None, digits: int = 1) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
