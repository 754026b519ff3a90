"""`status` as it is shown: text, lines, frames, and Prometheus' format."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from dspark_deploy.boot.diagnosis import Answer
from dspark_deploy.cli.prometheus import prometheus_text, write_prometheus
from dspark_deploy.cli.status import code_of, status
from dspark_deploy.cli.status_rows import lasting
from dspark_deploy.cli.status_text import frame_text, status_frame, status_line, status_text
from dspark_deploy.cli.text import served_text
from dspark_deploy.errors import ConfigError, ExitCode
from dspark_deploy.facts.patches import PatchOutcome
from dspark_deploy.facts.recall import GpuInside, HashedOnce
from dspark_deploy.flow.report import RankReport, StatusReport
from dspark_deploy.plan.situation import State
from dspark_deploy.plan.trouble import Trouble
from dspark_deploy.watch.generation import Generation
from dspark_deploy.watch.metrics import Load

HEAD = RankReport(
    node="head",
    rank=0,
    state="running",
    container="spark-pair-vllm-1",
    started_at="2026-09-01T10:00:00.000000000Z",
    release="0123456789ab",
    uptime_s=11_520,
    gpu=GpuInside(usable=True, detail="GPU 0: NVIDIA GB10"),
    image_as_tagged=True,
    cache=HashedOnce("2026-08-01T00:00:00Z", "/hub/x", "complete"),
    good_at="2026-09-01T10:06:00+00:00",
)
SERVING = StatusReport(
    pair="spark-pair",
    state=State.SERVING,
    profile="agent-1m",
    family="anemll",
    release="0123456789ab",
    base_url="http://10.77.0.1:8888/v1",
    ranks=(HEAD, replace(HEAD, node="worker", rank=1, gpu=GpuInside(usable=False, detail="Failed to initialize NVML"))),
    served_name="deepseek-v4-flash-0731",
    max_model_len=1048576,
    detail="one token was generated when asked",
    at="2026-09-01T13:12:00Z",
    generation=Generation("generates", "one token was generated when asked"),
    load=Load(2, 1, 0.1234, 3, 1234.5, 66.6, 2.0, 0.718, 3.59, acceptance_since_start=False),
    version="0.25.2",
    costly=(
        Answer(
            "F89",
            (),
            "breakable-graphs",
            "costly",
            "cause",
            "head",
            "scheduler",
            9,
            1,
            "Auto-enabling",
            "slow",
            "set 0",
        ),
    ),
)
TROUBLED = replace(
    SERVING,
    state=State.UNKNOWN,
    ranks=(HEAD, RankReport("worker", 1, "unreachable", detail="worker: no answer")),
    detail="worker: no answer; `dspark down` ends what can be reached",
    generation=None,
    load=None,
    costly=(),
    troubles=(Trouble("worker", None, ("worker: its host key is not known", "no line for it"), "accept it"),),
)


def samples(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Name -> label values in the order of their names -> value, by Prometheus' own parser."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_a_pair_that_serves_is_told_in_full() -> None:
    assert click.unstyle(status_text(SERVING)).splitlines() == [
        "spark-pair: serving",
        "  profile   agent-1m (family anemll)",
        "  release   0123456789ab",
        "  API       http://10.77.0.1:8888/v1 (vLLM 0.25.2)",
        "  model     deepseek-v4-flash-0731, 1048576 tokens",
        "  head      rank 0 running since 2026-09-01T10:00:00Z (3 h 12 min) in spark-pair-vllm-1",
        "            GPU usable in the container: GPU 0: NVIDIA GB10",
        "            model hashed 2026-08-01T00:00:00Z: complete, came up well 2026-09-01T10:06:00Z, image as tagged",
        "  worker    rank 1 running since 2026-09-01T10:00:00Z (3 h 12 min) in spark-pair-vllm-1",
        "            GPU NOT usable in the container: Failed to initialize NVML",
        "            model hashed 2026-08-01T00:00:00Z: complete, came up well 2026-09-01T10:06:00Z, image as tagged",
        "  requests  2 running, 1 waiting; KV pool 12.3 % held, 3 preemptions",
        "  speed     prompt 1,234.5 tokens/s, output 66.6 tokens/s (over 2.0 s)",
        "  drafts    71.8 % accepted, 3.59 a draft",
        "  tokens    one token was generated when asked",
        "  [WARN]    F89 on the head: slow",
        "            -> set 0",
    ]


def test_of_a_node_that_is_not_reached_its_own_remedy_is_shown_once() -> None:
    text = click.unstyle(status_text(TROUBLED))
    assert "  worker    rank 1 can't be asked" in text
    assert text.endswith(
        "  trouble   the worker\n"
        "            worker: its host key is not known\n"
        "            no line for it\n"
        "            -> accept it"
    )
    assert "dspark down" not in text


def test_a_stand_in_is_named_in_a_line_of_its_own() -> None:
    text = click.unstyle(status_text(replace(SERVING, stand_in="no model ran")))
    assert "  stand-in  what answers is no engine but a rehearsal's stand-in (no model ran)" in text


def test_one_look_fits_a_line() -> None:
    assert status_line(SERVING) == (
        "2026-09-01T13:12:00Z  spark-pair  serving  2 running, 1 waiting, KV 12.3 %  "
        "prompt 1234.5 tokens/s, output 66.6 tokens/s"
    )
    assert status_line(TROUBLED).endswith("worker unreachable  worker: its host key is not known -> accept it")


@pytest.mark.parametrize("width", [80, 120])
def test_a_frame_stays_within_its_width_and_says_all(width: int) -> None:
    frame = frame_text(SERVING, width=width)
    assert max(map(len, frame.splitlines())) <= width
    words = " ".join(frame.split())
    for part in ("spark-pair: serving", "71.8 % accepted", "Failed to initialize NVML", "F89 on the head: slow"):
        assert part in words


def test_a_frame_is_plain_ascii_without_colour_and_coloured_with() -> None:
    assert frame_text(SERVING, width=80).isascii()
    assert "\x1b[" not in frame_text(SERVING, width=80)
    assert "\x1b[" in frame_text(SERVING, width=80, colour=True)


def test_a_frame_takes_the_width_of_columns_off_a_terminal() -> None:
    page = io.StringIO()
    Console(file=page, _environ={"COLUMNS": "60"}).print(status_frame(SERVING))
    assert 50 < max(map(len, page.getvalue().splitlines())) <= 60


def test_the_page_is_what_prometheus_reads() -> None:
    found = samples(prometheus_text(SERVING))
    pair = ("spark-pair",)
    assert found["dspark_up"] == {pair: 1.0}
    assert found["dspark_state"]["spark-pair", "serving"] == 1.0
    assert sum(found["dspark_state"].values()) == 1.0
    assert found["dspark_kv_pool_used_ratio"] == {pair: 0.1234}
    assert found["dspark_preemptions_total"] == {pair: 3.0}
    assert found["dspark_generation_tokens_per_second"] == {pair: 66.6}
    assert found["dspark_rank_gpu_usable"] == {("head", "spark-pair", "0"): 1.0, ("worker", "spark-pair", "1"): 0.0}
    assert found["dspark_costly_warnings"] == {("F89", "spark-pair"): 1.0}


def test_what_can_not_be_told_has_no_sample() -> None:
    found = samples(prometheus_text(TROUBLED))
    assert found["dspark_up"] == {("spark-pair",): 0.0}
    assert found["dspark_node_reached"]["worker", "spark-pair", "1"] == 0.0
    assert ("worker", "spark-pair", "1") not in found["dspark_rank_running"]
    assert "dspark_requests_running" not in found


def test_every_line_of_the_page_is_of_the_text_format() -> None:
    """Version 0.0.4: HELP and TYPE before the samples of their family, a name and a value a line."""
    page = prometheus_text(SERVING)
    assert page.endswith("\n")
    named: set[str] = set()
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            named.add(line.split()[2])
        elif not line.startswith("# HELP "):
            assert line.partition("{")[0] in named
            float(line.rpartition(" ")[2])


def test_a_file_is_replaced_as_a_whole_and_others_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "dspark.prom"
    path.write_text("old")
    write_prometheus(SERVING, path)
    assert path.read_text() == prometheus_text(SERVING)
    assert [each.name for each in tmp_path.iterdir()] == ["dspark.prom"]
    assert path.stat().st_mode & 0o044 == 0o044


def test_a_link_stays_one_and_a_pipe_is_never_replaced(tmp_path: Path) -> None:
    path, link, pipe = (tmp_path / name for name in ("dspark.prom", "link", "pipe"))
    link.symlink_to(path)
    write_prometheus(SERVING, link)
    assert link.is_symlink()
    assert path.read_text() == prometheus_text(SERVING)
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="no regular file"):
        write_prometheus(SERVING, pipe)
    assert pipe.is_fifo()


def test_a_patch_that_failed_at_this_boot_is_told() -> None:
    outcome = PatchOutcome("1-fixes/odd.sh", "failed", 3, required=False)
    shown = status_text(replace(SERVING, patches={"worker": (outcome,)}))
    assert "on the worker: optional patch 1-fixes/odd.sh failed (exit 3)" in shown


def test_whoever_calls_a_pair_with_a_key_is_told_to_send_it() -> None:
    open_to_all, keyed = served_text(SERVING), served_text(replace(SERVING, keyed=True))
    assert "any API key" in open_to_all
    assert "Authorization" not in open_to_all
    assert "any API key" not in keyed
    assert '-H "Authorization: Bearer $KEY"' in keyed


def test_a_file_that_can_not_be_written_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        write_prometheus(SERVING, tmp_path / "absent" / "dspark.prom")


@pytest.mark.parametrize(
    ("state", "code"),
    [(State.SERVING, ExitCode.OK), (State.UNKNOWN, ExitCode.UNREACHABLE), (State.WEDGED, ExitCode.NOT_AS_WANTED)],
)
def test_the_exit_code_tells_the_word(state: State, code: ExitCode) -> None:
    assert code_of(replace(SERVING, state=state)) is code


@pytest.mark.parametrize("words", [("--prometheus", "--watch"), ("--prometheus", "--output", "json")])
def test_two_things_on_standard_output_are_refused(words: tuple[str, ...]) -> None:
    ran = CliRunner().invoke(status, words)
    assert ran.exit_code == 2
    assert "give a FILE" in ran.output


@pytest.mark.parametrize(
    ("seconds", "told"), [(5.4, "5 s"), (125, "2 min"), (11_520, "3 h 12 min"), (187_200, "2 d 4 h")]
)
def test_a_time_is_told_in_its_two_largest_units(seconds: float, told: str) -> None:
    assert lasting(seconds) == told
