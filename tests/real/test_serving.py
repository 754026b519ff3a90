"""One boot of real vLLM under `dspark up`, and all that is asked of it while it serves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.bed.bed import Bed
from tests.bed.faults import FaultyNode

from .pair import MODEL, PORT, Pair

MOST_BYTES = 8 * 2**30  # of memory, for both ranks together


@pytest.fixture(name="up", scope="module")
def _up(pair: Pair) -> dict[str, Any]:
    report: dict[str, Any] = pair.up().check().json()["result"]
    return report


def test_up_serves_worker_first_with_both_ranks_proved(bed: Bed, up: dict[str, Any]) -> None:
    assert (up["state"], up["profile"], up["family"]) == ("serving", "tiny", "cpu")
    assert up["base_url"] == f"http://{bed.head.lan_address}:{PORT}/v1"
    (head,), (worker,) = bed.head.containers(), bed.worker.containers()
    began = [node.api.inspect(container.id)["Created"] for node, container in ((bed.worker, worker), (bed.head, head))]
    assert began == sorted(began)


@pytest.mark.usefixtures("up")
def test_a_second_up_finds_it_serving_and_changes_nothing(bed: Bed, pair: Pair) -> None:
    before = [container.id for node in bed.nodes for container in node.running()]
    again = pair.up().check().json()["result"]
    assert (again["state"], again["changed"]) == ("serving", False)
    assert [container.id for node in bed.nodes for container in node.running()] == before


@pytest.mark.usefixtures("up")
def test_status_says_serving_and_tells_both_ranks(pair: Pair) -> None:
    told = pair.told("status")
    assert told["state"] == "serving"
    assert [(rank["node"], rank["rank"], rank["state"]) for rank in told["ranks"]] == [
        ("head", 0, "running"),
        ("worker", 1, "running"),
    ]


@pytest.mark.usefixtures("up")
def test_logs_merge_both_ranks_lines(pair: Pair) -> None:
    lines = pair.dspark("logs", "--tail", "2000").check().stdout.splitlines()
    assert any(line.startswith("head") and "Application startup complete" in line for line in lines)
    assert any(line.startswith("worker") and "headless multiproc executor" in line for line in lines)


@pytest.mark.usefixtures("up")
def test_explain_reads_the_whole_boot_of_both_ranks(pair: Pair) -> None:
    told = pair.explained()
    assert (told["outcome"], told["failures"]) == ("ready", [])
    ranks = {rank["node"]: rank for rank in told["ranks"]}
    head, worker = ranks["head"], ranks["worker"]
    assert (head["phase"], head["ready"], head["attempts"]) == ("ready", True, 1)
    assert (worker["phase"], worker["attempts"]) == ("kv", 1)  # a CPU rank says no more
    figures = head["figures"]
    assert figures["version"] == "0.32.0"
    assert figures["max_model_len"] == 16384
    assert figures["kv_pool_tokens"] >= 16384
    assert head["unknown_variables"] == worker["unknown_variables"] == []


@pytest.mark.usefixtures("up")
def test_the_caches_are_whole_and_equal_encoder_included(pair: Pair) -> None:
    told = pair.told("verify-cache")
    assert {node["verdict"] for node in told["nodes"].values()} == {"complete"}
    encoders = [finding for finding in told["findings"] if finding["id"] == "cache-encoder"]
    assert [finding["status"] for finding in encoders] == ["ok", "ok"]


@pytest.mark.usefixtures("up")
def test_both_images_encoders_are_the_snapshots_own(bed: Bed, pair: Pair) -> None:
    for node in bed.nodes:
        assert "dspark prepare: encoder: installed" in pair.log(node)


@pytest.mark.usefixtures("up")
def test_a_chat_is_answered_over_the_heads_management_address(pair: Pair) -> None:
    status, text = pair.say(ignore_eos=True)
    answer = json.loads(text)
    assert status == 200
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["usage"]["completion_tokens"] == 16


@pytest.mark.usefixtures("up")
def test_a_stream_brings_each_token_and_the_usage_at_its_end(pair: Pair) -> None:
    status, text = pair.say(stream=True, stream_options={"include_usage": True}, ignore_eos=True)
    assert status == 200
    *chunks, end = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert end == "[DONE]"
    assert json.loads(chunks[-1])["usage"]["completion_tokens"] == 16
    words = [choice["delta"].get("content") for chunk in chunks for choice in json.loads(chunk)["choices"]]
    assert len([word for word in words if word]) > 8


@pytest.mark.usefixtures("up")
def test_a_completion_is_the_same_each_time_at_temperature_0(pair: Pair) -> None:
    body = {"model": MODEL, "prompt": "Once upon a time", "max_tokens": 16, "temperature": 0}
    texts = {json.loads(pair.ask("/v1/completions", body)[1])["choices"][0]["text"] for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.usefixtures("up")
def test_smoke_finds_the_api_right_and_the_tiny_models_answers_wrong(pair: Pair) -> None:
    ran = pair.dspark("smoke", "--output", "json", timeout=180)
    assert ran.returncode == 7, ran
    said = {finding["id"]: finding for finding in ran.json()["result"]["smoke"]["findings"]}
    right = ("smoke-models", "smoke-completion", "smoke-completion-stream", "smoke-image")
    assert [said[name]["status"] for name in right] == ["ok"] * len(right)
    assert said["smoke-chat"]["status"] == said["smoke-tool"]["status"] == "fail"
    assert "no call came back" in said["smoke-tool"]["message"]


@pytest.mark.usefixtures("up")
def test_bench_decode_counts_tokens_by_the_servers_usage(pair: Pair) -> None:
    words = ("bench", "decode", "-c", "1,2", "--trials", "2", "--tokens", "64")
    ran = pair.dspark(*words, "--output", "json", timeout=180).check()
    lanes = ran.json()["result"]["measurement"]["result"]["lanes"]
    assert [(lane["concurrency"], [trial["tokens"] for trial in lane["trials"]]) for lane in lanes] == [
        (1, [63, 63]),
        (2, [126, 126]),
    ]
    assert all(trial["aggregate_tps"] > 0 and not trial["failures"] for lane in lanes for trial in lane["trials"])


@pytest.mark.usefixtures("up")
def test_bench_sweep_fills_every_cell_with_prompts_of_exact_length(pair: Pair) -> None:
    words = ("--prompts", "512,1024", "-c", "1,2", "--trials", "1", "--tokens", "16", "--cool-down", "100ms")
    ran = pair.dspark("bench", "sweep", *words, "--output", "json", timeout=180).check()
    cells = ran.json()["result"]["measurement"]["result"]["cells"]
    assert [(cell["prompt"], cell["concurrency"], cell["exact"]) for cell in cells] == [
        (512, 1, True),
        (512, 2, True),
        (1024, 1, True),
        (1024, 2, True),
    ]
    for cell in cells:
        (trial,) = cell["trials"]
        assert set(trial["prompt_tokens"]) == {cell["prompt"]}
        assert trial["failures"] == []


@pytest.mark.usefixtures("up")
def test_compare_of_the_pair_with_itself_finds_every_answer_the_same(pair: Pair, up: dict[str, Any]) -> None:
    ran = pair.dspark("compare", up["base_url"], "--output", "json", timeout=300)
    assert ran.returncode == 7, ran  # a random model is odd on both sides
    compared = ran.json()["result"]["comparison"]
    assert compared["verdict"].startswith("both sides are odd")
    assert all(each["same"] for each in compared["pairings"])


@pytest.mark.usefixtures("up")
def test_the_ranks_agree_in_all_that_parity_compares(pair: Pair) -> None:
    told = pair.told("parity")
    assert told["agree"] is True
    assert {finding["status"] for finding in told["findings"]} <= {"ok", "skip", "warn"}


@pytest.mark.usefixtures("up")
def test_both_ranks_together_take_less_than_8_gib(bed: Bed) -> None:
    assert sum(map(_memory, bed.nodes)) < MOST_BYTES


def _memory(node: FaultyNode) -> int:
    """Bytes that the node's rank holds; what processes share is counted once."""
    texts = [Path(f"/proc/{process.pid}/smaps_rollup").read_text() for process in node.processes()]
    return sum(
        int(kilobytes) * 1024 for text in texts for kilobytes in re.findall(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    )
