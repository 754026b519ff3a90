"""Measurements as they are kept: made up, near to what was published."""

from __future__ import annotations

from dataclasses import replace

from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.facts.metrics import Acceptance
from dspark_deploy.measure.bench_decode import Method
from dspark_deploy.measure.client import Tally
from dspark_deploy.measure.decode import Lane, Trial
from dspark_deploy.measure.detect.sample import Alarm
from dspark_deploy.measure.gate import Differs, GateResult
from dspark_deploy.measure.judged import Judged
from dspark_deploy.measure.lanes import find_lane, load_lanes, set_beside
from dspark_deploy.measure.overhead import Overhead
from dspark_deploy.measure.store import DecodeResult, Measurement, Origin, SweepResult
from dspark_deploy.measure.sweep import Cell, Plan, SweepTrial

WOBBLE = (1.0, 0.98, 1.03)  # of three trials
ORIGIN = Origin(
    pair="example",
    profile="agent-1m",
    family="anemll",
    release="1f0c6cfe5f2a",
    model="deepseek-ai/DeepSeek-V4-Flash-0731",
    served_name="deepseek-v4-flash-0731",
    max_model_len=1048576,
    image="ghcr.io/anemll/dspark-vllm-gx10:0.1.1",
    image_ids={"head": "sha256:aa11", "worker": "sha256:aa11"},
    argv={"head": ("vllm", "serve", "deepseek-v4-flash-0731", "--max-num-seqs", "6")},
    facts={"head": {"hostname": "spark-head", "driver": "580.95.05"}},
    kv_pool_tokens=2_493_464,
    server_version="0.21.1",
    dspark_version="0.1.0",
)


def decode(rate: float = 1.0, began: str = "2026-09-01T10:00:00+00:00") -> Measurement[DecodeResult]:
    """A decode benchmark, `rate` times as fast as what was published."""
    known = {1: 74.0, 2: 101.0, 4: 140.0, 6: 172.0}
    lanes = tuple(Lane(at, tuple(_trial(at, tps * rate * wobble) for wobble in WOBBLE)) for at, tps in known.items())
    published = find_lane(load_lanes(), "agent-1m", "static")
    drift = set_beside(lanes, published)
    result = DecodeResult(Method(tuple(known)), lanes, published.name, published.source, 0.1, drift)
    return Measurement(f"{_stamp(began)}-decode-aa0001", "decode", began, 212.0, ORIGIN, result, OVERHEAD, TALLY)


def sweep(rate: float = 1.0, began: str = "2026-09-01T11:00:00+00:00") -> Measurement[SweepResult]:
    """A sweep, `rate` times as fast as the published one."""
    rows = next(each for each in load_measurements().sweeps if each.name == "sweep-2026-08-01").rows
    cells = tuple(
        Cell(
            row.prompt,
            row.concurrency,
            tuple(
                SweepTrial(
                    ttft_s=tuple((row.ttft_s or 0) / rate * wobble for _ in range(row.concurrency)),
                    prefill_tps=tuple((row.prefill_tps or 0) * rate / wobble for _ in range(row.concurrency)),
                    decode_tps=tuple((row.decode_tps or 0) * rate * wobble for _ in range(row.concurrency)),
                    aggregate_tps=(row.aggregate_tps or 0) * rate * wobble,
                    wall_s=10.0,
                    prompt_tokens=(row.prompt,) * row.concurrency,
                    output_tokens=512 * row.concurrency,
                )
                for wobble in WOBBLE
            ),
        )
        for row in rows
    )
    result = SweepResult(Plan(), cells)
    return Measurement(f"{_stamp(began)}-sweep-bb0001", "sweep", began, 2280.0, ORIGIN, result, OVERHEAD, TALLY)


def gate() -> Measurement[GateResult]:
    """A gate that found something; its text has what HTML must not take for its own."""
    bad = Judged(
        "Compare tea and coffee",
        4,
        "prompt",
        "REF-A <script>alert(1)</script> 因为",
        "stop",
        "",
        (Alarm("script", "<b>因为</b>"),),
    )
    result = GateResult(
        (1, 2, 4, 6), 88, (bad,), (Differs("Count from 1 to 20", (("1 2", 3), ("1 3", 1))),), "look here"
    )
    return Measurement("20260901T120000-gate-cc0001", "gate", "2026-09-01T12:00:00+00:00", 300.0, ORIGIN, result)


def other_release(measurement: Measurement[DecodeResult]) -> Measurement[DecodeResult]:
    """The same of another release."""
    return replace(measurement, origin=replace(ORIGIN, release="ffffffffffff"))


OVERHEAD = Overhead(0.12, 0.0012, 0.004, 0.0031)
TALLY = Tally(63, {"timeout": 1}, 6)


def _trial(concurrency: int, tps: float) -> Trial:
    stream = tps / concurrency
    tokens = 511 * concurrency
    return Trial(
        tps, stream, (stream,) * concurrency, tokens / tps, tokens, (0.4,) * concurrency, Acceptance(1000, 5000, 3550)
    )


def _stamp(began: str) -> str:
    return began[:19].replace("-", "").replace(":", "")
