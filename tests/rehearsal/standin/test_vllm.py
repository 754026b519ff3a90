"""The stand-in engine as two processes on loopback: boot, API, faults."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.rehearsal.standin import snapshots
from tests.rehearsal.standin.loopback import LIMIT_S, PROGRAM, Loopback, loopback


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Loopback]:
    """A pair that has not started yet."""
    with loopback(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """A pair that serves, for tests that only ask."""
    with loopback(tmp_path_factory.mktemp("serving")) as made:
        made.serve("--reasoning-parser", "deepseek_v4")
        yield made


def test_it_runs_from_a_folder_without_the_dspark_package(pair: Loopback, tmp_path: Path) -> None:
    folder = tmp_path / "copied-beside-each-other"
    shutil.copytree(PROGRAM.parent, folder)
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    worker = pair.start(1, python=python, program=folder / "vllm.py")
    head = pair.start(0, python=python, program=folder / "vllm.py")
    head.wait_for("Application startup complete.")
    worker.wait_for("Kernel JIT monitor activated")


def test_the_version_is_its_familys() -> None:
    argv = [sys.executable, str(PROGRAM), "--version"]
    done = subprocess.run(argv, env={"DSPARK_STANDIN_FAMILY": "stage-c"}, check=True, capture_output=True, text=True)
    assert done.stdout == "0.21.1rc1.dev339\n"


def test_it_ends_with_the_pipe_of_its_parent(tmp_path: Path) -> None:
    with loopback(tmp_path) as made:
        ranks = made.serve()
    assert all(rank.process.returncode is not None for rank in ranks)


# --- the API ------------------------------------------------------------------------------------------------------


def test_a_chat_is_plain_english_and_says_where_it_comes_from(serving: Loopback) -> None:
    answer = serving.chat(max_tokens=200)
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"].endswith(".")
    assert "stand-in" in answer["system_fingerprint"]
    usage = answer["usage"]
    assert usage["completion_tokens"] == len(choice["message"]["content"].split())
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_temperature_0_says_the_same_again(serving: Loopback) -> None:
    first, second = (serving.chat(temperature=0, max_tokens=64)["choices"] for _ in range(2))
    assert first == second


def test_max_tokens_cuts_and_says_so(serving: Loopback) -> None:
    answer = serving.chat(max_tokens=5)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 5


def test_ignore_eos_fills_max_tokens_exactly(serving: Loopback) -> None:
    assert serving.chat(max_tokens=700, ignore_eos=True)["usage"]["completion_tokens"] == 700


def test_thinking_comes_first_and_may_eat_everything(serving: Loopback) -> None:
    message = serving.chat(chat_template_kwargs={"thinking": True, "reasoning_effort": "low"})["choices"][0]["message"]
    assert message["reasoning"]
    assert message["content"]
    eaten = serving.chat(chat_template_kwargs={"thinking": True, "reasoning_effort": "max"}, max_tokens=32)["choices"][
        0
    ]
    assert (eaten["message"]["content"], eaten["finish_reason"]) == (None, "length")


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_stream_adds_up_to_what_its_usage_counts(serving: Loopback) -> None:
    body = {"model": "dsv4", "messages": [{"role": "user", "content": "Go on."}], "max_tokens": 40, "stream": True}
    status, text = serving.ask("/v1/chat/completions", {**body, "stream_options": {"include_usage": True}})
    *chunks, last = events(text)
    said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert status == 200
    assert len(said.split()) == last["usage"]["completion_tokens"] == 40
    assert last["choices"] == []
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert len(chunks) < 40, "with drafts a chunk holds several tokens"


def test_a_stream_without_the_option_has_no_usage(serving: Loopback) -> None:
    _, text = serving.ask("/v1/completions", {"model": "dsv4", "prompt": "Go on.", "stream": True})
    assert all("usage" not in event for event in events(text))


def test_plain_completions_answer_with_16_tokens(serving: Loopback) -> None:
    status, text = serving.ask("/v1/completions", {"model": "dsv4", "prompt": "Go on."})
    assert status == 200
    assert len(json.loads(text)["choices"][0]["text"].split()) == 16


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (
            "/v1/chat/completions",
            {"model": "gpt", "messages": [{"role": "user", "content": "x"}]},
            404,
            "does not exist",
        ),
        ("/v1/chat/completions", {"model": "dsv4", "messages": []}, 400, "messages"),
        ("/v1/completions", {"model": "dsv4"}, 400, "prompt"),
        ("/v1/completions", {"model": "dsv4", "prompt": "abcd" * 350_000}, 400, "maximum context length is 350000"),
        ("/v1/completions", {"model": "dsv4", "prompt": "x", "max_tokens": 350_000}, 400, "maximum context length"),
        ("/v1/completions", {"model": "dsv4", "prompt": "x", "temperature": -1}, 400, "temperature"),
        ("/v1/completions", {"model": "dsv4", "prompt": "x", "thinking_token_budget": 1}, 400, "thinking_token_budget"),
        ("/v1/nothing", {}, 404, "Not Found"),
        ("/health", {}, 405, "Method Not Allowed"),
    ],
)
def test_wrong_requests_are_refused(serving: Loopback, path: str, body: object, status: int, message: str) -> None:
    assert (answer := serving.ask(path, body))[0] == status
    assert message in answer[1]


def test_models_lists_every_served_name(serving: Loopback) -> None:
    models = json.loads(serving.ask("/v1/models")[1])["data"]
    assert [(model["id"], model["max_model_len"]) for model in models] == [("dsv4", 350_000), ("alias", 350_000)]


def test_tokenize_counts_as_a_prompt_is_counted_and_comes_back(serving: Loopback) -> None:
    told = json.loads(serving.ask("/tokenize", {"model": "dsv4", "prompt": "Two machines, one model."})[1])
    assert (told["count"], told["max_model_len"]) == (len(told["tokens"]), 350_000)
    assert json.loads(serving.ask("/detokenize", {"tokens": told["tokens"]})[1])["prompt"] == "Two machines, one model."


def test_metrics_move_with_requests(serving: Loopback) -> None:
    def counted(name: str) -> float:
        lines = serving.ask("/metrics")[1].splitlines()
        return float(next(line for line in lines if line.startswith(f"vllm:{name}{{")).rpartition(" ")[2])

    before = counted("generation_tokens_total")
    serving.chat(max_tokens=30)
    assert counted("generation_tokens_total") == before + 30
    assert counted("num_requests_running") == counted("num_requests_waiting") == 0
    assert counted("spec_decode_num_draft_tokens_total") > counted("spec_decode_num_accepted_tokens_total") > 0


def test_more_requests_than_slots_wait_in_line(pair: Loopback) -> None:
    pair.switches(0, decode_tps=40)
    pair.serve("--max-num-seqs", "2")
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(pair.chat, max_tokens=20) for _ in range(4)]
        seen = set()
        while "2" not in seen and not all(answer.done() for answer in answers):
            lines = pair.ask("/metrics")[1].splitlines()
            seen |= {line.rpartition(" ")[2] for line in lines if line.startswith("vllm:num_requests_waiting{")}
    assert "2" in seen


@pytest.mark.parametrize("by", ["variable", "flag"])
def test_a_key_guards_what_the_real_server_guards(pair: Loopback, by: str) -> None:
    if by == "flag":
        pair.serve("--api-key", "other", "--api-key", "right")
    else:
        pair.serve(environment={"VLLM_API_KEY": "right"})
    assert pair.ask("/v1/models")[0] == 401
    assert pair.ask("/v1/models", key="other")[0] == 401
    assert pair.ask("/v1/models", key="right")[0] == 200
    assert [pair.ask(path)[0] for path in ("/health", "/metrics", "/version")] == [200, 200, 200]
    assert pair.ask("/tokenize", {"prompt": "x"})[0] == 200


# --- the boot -----------------------------------------------------------------------------------------------------


def test_unknown_variables_are_named_by_family(pair: Loopback) -> None:
    names = ["VLLM_DSPARK_LOCAL_ARGMAX", "VLLM_TRITON_MLA_SPARSE", "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"]
    worker = pair.start(1, environment=dict.fromkeys(names, "4096"))
    worker.wait_for("world_size=2 rank=1")
    named = [line.rpartition(" ")[2] for line in worker.text().splitlines() if "Unknown vLLM environment" in line]
    assert named == names[:2]


GRAPHS_OFF = {"VLLM_USE_BREAKABLE_CUDAGRAPH": "0"}
WARNINGS = (
    "Auto-enabling VLLM_USE_BREAKABLE_CUDAGRAPH=1.",
    "Truncating max_cudagraph_capture_size to ",
    "tokens is set to ",
)


@pytest.mark.parametrize(
    ("family", "environment", "more", "said"),
    [
        ("anemll", {}, "--max-num-batched-tokens 16384", {WARNINGS[0]}),
        ("anemll", GRAPHS_OFF, "--max-num-batched-tokens 16384", set()),
        ("stage-c", {}, "--max-num-batched-tokens 16384", set()),
        ("stage-c", {}, "--max-num-batched-tokens 16384 --max-cudagraph-capture-size 40", set()),
        ("stage-c", {}, "--max-num-batched-tokens 16384 --max-cudagraph-capture-size 36", {WARNINGS[1] + "32"}),
        ("stage-c", {}, "--max-num-batched-tokens 8192", {WARNINGS[2] + "8168"}),
    ],
)
def test_warnings_follow_from_the_arguments(
    pair: Loopback, family: str, environment: dict[str, str], more: str, said: set[str]
) -> None:
    worker = pair.start(1, *more.split(), family=family, environment=environment)
    worker.wait_for("world_size=2 rank=1")
    assert all(warning in worker.text() for warning in said)
    assert sum(start in worker.text() for start in WARNINGS) == len(said)


@pytest.mark.parametrize(
    ("more", "environment", "code", "message"),
    [
        (("--linear-backend", "flashinfer_b12x"), {}, 1, "linear backend flashinfer_b12x"),
        (("--gpu-memory-utilization", "0.6"), {}, 1, "No available memory for the cache blocks"),
        (("--gpu-memory-utilization", "0.71"), {}, 1, "To serve at least one request with the model's max seq len"),
        (("--max-model-len", "2M"), {}, 1, "is greater than the derived max_model_len"),
        ((), {"NVIDIA_VISIBLE_DEVICES": ""}, 1, "Failed to infer device type"),
        ((), {"VLLM_HOST_IP": "10.0.0.9"}, 1, "Cannot assign requested address"),
        ((), {"GLOO_SOCKET_IFNAME": "eth7"}, 1, "Unable to find address for: eth7"),
    ],
)
def test_boots_that_can_only_fail_end_with_the_real_words(
    pair: Loopback, more: tuple[str, ...], environment: dict[str, str], code: int, message: str
) -> None:
    worker = pair.start(1, *more, environment=environment)
    pair.start(0, *more)
    assert worker.process.wait(LIMIT_S) == code
    assert message in worker.text()


def test_a_snapshot_that_is_not_there_or_cut_short_is_said(pair: Loopback) -> None:
    folder = pair.root(1) / f"cache/huggingface/hub/models--{snapshots.MODEL_0731.replace('/', '--')}"
    shard = folder / f"snapshots/{snapshots.REVISION_0731}/model-00002-of-00004.safetensors"
    shard.resolve().write_bytes(shard.read_bytes()[:-4])
    pair.start(0)
    worker = pair.start(1)
    assert worker.process.wait(LIMIT_S) == 1
    assert "file not fully covered" in worker.text()
    shutil.rmtree(folder / "snapshots")
    again = pair.start(1)
    assert again.process.wait(LIMIT_S) == 1
    assert "LocalEntryNotFoundError" in again.text()


def test_a_missing_peer_ends_the_wait_at_its_limit(pair: Loopback) -> None:
    head = pair.start(0, "--distributed-timeout-seconds", "1")
    assert head.process.wait(LIMIT_S) == 1
    assert "1/2 clients joined" in head.text()


def test_ranks_with_different_lengths_meet_in_silence(pair: Loopback) -> None:
    worker = pair.start(1, "--max-model-len", "65536")
    head = pair.start(0)
    head.wait_for("Application startup complete.")
    assert "65536" not in head.text()
    assert "350000" not in worker.text()


def test_a_rank_dies_at_a_named_phase_with_a_named_code(pair: Loopback) -> None:
    pair.switches(1, **{"1": {"die_at": "capture", "exit_code": 9, "die_message": "CUDA out of memory"}})
    pair.start(0)
    worker = pair.start(1)
    assert worker.process.wait(LIMIT_S) == 9
    assert "CUDA out of memory" in worker.text()
    assert pair.ranks[0].process.wait(LIMIT_S) == 1


def test_a_worker_that_never_meets_prints_no_rendezvous_line(pair: Loopback) -> None:
    pair.switches(1, never_rendezvous=True)
    worker = pair.start(1)
    worker.wait_for("Chunked prefill is enabled")
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.wait(0.5)
    assert "world_size" not in worker.text()
    assert "Launching" not in worker.text()
