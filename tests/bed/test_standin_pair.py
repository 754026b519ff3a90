"""The stand-in engine on both hosts, started by hand-written compose files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import pytest

from . import handmade, images
from .bed import Bed
from .handmade import CONTAINER, ask, say, start, wait_for_exit, wait_for_log
from .host import wait_until

UP = "Application startup complete."


@pytest.mark.parametrize("image", [images.ANEMLL, images.STAGE_C])
def test_a_pair_of_either_family_serves_over_the_fabric(bed: Bed, image: str) -> None:
    start(bed, image)
    wait_for_log(bed.head, UP)
    status, text = say(bed)
    answer = json.loads(text)
    assert status == 200
    assert len(answer["choices"][0]["message"]["content"]) > 100
    assert "stand-in" in answer["system_fingerprint"]
    assert {8888, 25000} & bed.head.listening() == {8888}
    assert bed.worker.listening() == set()


def test_both_logs_show_the_boot_in_the_real_order(bed: Bed) -> None:
    start(bed)
    wait_for_log(bed.head, UP)
    wait_for_log(bed.worker, "Kernel JIT monitor activated")
    in_order(bed.head.logs(CONTAINER), [*HEAD_LINES, UP])
    in_order(bed.worker.logs(CONTAINER), WORKER_LINES)
    assert "(APIServer" not in bed.worker.logs(CONTAINER)


HEAD_LINES = [
    "non-default args: {",
    "Unknown vLLM environment variable detected: VLLM_BUILD_URL",
    "Using max model len 1048576",
    "Using nvfp4_ds_mla data type to store kv cache.",
    "Initializing a V1 LLM engine",
    "world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://192.168.177.11:25000 backend=nccl",
    "Loading safetensors checkpoint shards: 100% Completed | 48/48",
    "Available KV cache memory: ",
    "GPU KV cache size: ",
    "Maximum concurrency for 1,048,576 tokens per request: ",
    "init engine (profile, create kv cache, warmup model) took",
    "Starting vLLM server on http://0.0.0.0:8888",
]
WORKER_LINES = [
    "Inferred data_parallel_rank 0 from node_rank 1",
    "headless multiproc executor, with head node address 192.168.177.11:25000 for torch.distributed",
    "(Worker pid=",
    "world_size=2 rank=1 local_rank=0 distributed_init_method=tcp://192.168.177.11:25000 backend=nccl",
    "(Worker_TP1 pid=",
    "Loading weights took",
    "Kernel JIT monitor activated",
]


def in_order(log: str, parts: list[str]) -> None:
    at = 0
    for part in parts:
        found = log.find(part, at)
        assert found >= 0, f"{part!r} is missing or too early in\n{log}"
        at = found


def test_the_worker_alone_waits_at_the_rendezvous(bed: Bed) -> None:
    node = bed.worker
    handmade.write(node, images.ANEMLL, handmade.argv(bed, node), handmade.environment(node))
    handmade.up(node)
    wait_for_log(node, "world_size=2 rank=1")
    time.sleep(0.5)
    assert node.containers()[0].state == "running"
    assert "Loading model" not in node.logs(CONTAINER)


@pytest.mark.parametrize(
    ("role", "change", "message"),
    [
        ("worker", {"NCCL_SOCKET_IFNAME": "enp9s9"}, "Unable to find address for: enp9s9"),
        ("worker", {"GLOO_SOCKET_IFNAME": "enp1s0f1np1"}, "Unable to find address for: enp1s0f1np1"),
        ("head", {"GLOO_SOCKET_IFNAME": ""}, "Unable to find address for: "),
        ("worker", {"VLLM_HOST_IP": "192.168.177.11"}, "Cannot assign requested address"),
        ("worker", {"NCCL_IB_GID_INDEX": ""}, "unhandled system error"),
        ("worker", {"NCCL_IB_GID_INDEX": "3"}, "unhandled system error"),
        ("head", {"HF_HOME": "/nowhere"}, "LocalEntryNotFoundError"),
        ("worker", {"VLLM_PREFIX_CACHE_RETENTION_INTERVAL": ""}, "invalid literal for int()"),
    ],
)
def test_a_wrong_environment_ends_that_rank(bed: Bed, role: str, change: Mapping[str, str], message: str) -> None:
    start(bed, variables={role: change})
    node = {"head": bed.head, "worker": bed.worker}[role]
    assert wait_for_exit(node) == 1
    assert message in node.logs(CONTAINER)


def test_the_right_gid_index_of_each_node_is_taken(bed: Bed) -> None:
    start(bed, variables={"head": {"NCCL_IB_GID_INDEX": "3"}, "worker": {"NCCL_IB_GID_INDEX": "5"}})
    wait_for_log(bed.head, UP)


def test_a_rank_that_dies_while_loading_takes_the_other_with_it(bed: Bed) -> None:
    bed.worker.stub(die_at="draft", exit_code=7, die_message="RuntimeError: CUDA error")
    start(bed)
    assert wait_for_exit(bed.worker) == 7
    assert wait_for_exit(bed.head) == 1
    assert "recvValue failed" in bed.head.logs(CONTAINER)


def test_a_dead_worker_is_noticed_by_the_next_request_only(bed: Bed) -> None:
    start(bed)
    wait_for_log(bed.head, UP)
    bed.worker.docker("kill", CONTAINER).check()
    time.sleep(0.3)
    assert ask(bed, "/health")[0] == 200
    assert say(bed)[0] == 500
    assert wait_for_exit(bed.head) == 0  # as the real one ends, once it has shut down
    assert "EngineDeadError" in bed.head.logs(CONTAINER)


def test_the_worker_outlives_its_head(bed: Bed) -> None:
    start(bed)
    wait_for_log(bed.head, UP)
    bed.head.docker("stop", CONTAINER).check()
    time.sleep(1)
    assert bed.worker.containers()[0].state == "running"


def test_a_pulled_cable_hangs_requests_until_it_is_back(bed: Bed) -> None:
    bed.head.stub(broadcast_s=1, link_s=0.5)
    start(bed)
    wait_for_log(bed.head, UP)
    bed.worker.pull_cable()
    time.sleep(0.8)
    assert ask(bed, "/health")[0] == 200
    assert say(bed, timeout=2.5)[0] == 0
    wait_for_log(bed.head, "No available shared memory broadcast block found in 60 seconds")
    bed.worker.plug_cable()
    wait_until(lambda: say(bed)[0] == 200, 20)


def test_sigterm_is_ignored_while_loading_and_obeyed_afterwards(bed: Bed) -> None:
    for node in bed.nodes:
        node.stub(load_s=3)
    start(bed)
    wait_for_log(bed.head, "Loading model from scratch")
    bed.head.docker("kill", "-s", "TERM", CONTAINER).check()
    wait_for_log(bed.head, UP)
    began = time.monotonic()
    bed.head.docker("stop", "-t", "10", CONTAINER).check()
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("switch", "path", "expected"),
    [
        ({"wrong_model_name": "another"}, "/v1/models", '"id": "another"'),
        ({"wrong_max_model_len": 4096}, "/v1/models", '"max_model_len": 4096'),
    ],
)
def test_switches_change_what_the_api_says(bed: Bed, switch: dict[str, object], path: str, expected: str) -> None:
    bed.head.stub(**switch)
    start(bed)
    wait_for_log(bed.head, UP)
    assert expected in ask(bed, path)[1]


def test_the_api_can_be_broken_while_it_serves(bed: Bed) -> None:
    start(bed)
    wait_for_log(bed.head, UP)
    bed.head.stub(api="error")
    assert say(bed)[0] == 500
    bed.head.stub(api="empty")
    assert json.loads(say(bed)[1])["choices"][0]["message"]["content"] is None
    bed.head.stub(api="garbage")
    assert "stand" not in json.loads(say(bed)[1])["choices"][0]["message"]["content"]
    bed.head.stub(api="no_generate")
    assert say(bed, timeout=1)[0] == 0
    assert ask(bed, "/health")[0] == 200
    bed.head.stub()
    assert say(bed)[0] == 200


def test_a_taken_api_port_ends_the_head_at_once(bed: Bed) -> None:
    bed.head.exec(["sh", "-c", "setsid python3 -m http.server 8888 > /dev/null 2>&1 &"]).check()
    wait_until(lambda: 8888 in bed.head.listening())
    start(bed)
    assert wait_for_exit(bed.head) == 1
    assert "Address already in use" in bed.head.logs(CONTAINER)


def test_a_container_without_gpu_is_refused(bed: Bed) -> None:
    words = ["run", "--network", "host", "--entrypoint", "/usr/local/bin/vllm", images.ANEMLL, "serve", "x/y"]
    done = bed.head.docker(*words)
    assert done.returncode == 1
    assert "no GPU" in done.stderr


def test_arguments_of_the_other_family_are_refused(bed: Bed) -> None:
    start(bed, images.STAGE_C, extra=["--moe-backend", "flashinfer_b12x"])
    assert wait_for_exit(bed.worker) == 2
    assert "unrecognized arguments: --moe-backend flashinfer_b12x" in bed.worker.logs(CONTAINER)
