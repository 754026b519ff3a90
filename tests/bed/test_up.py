"""The main job on two real hosts."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from .bed import Bed
from .host import wait_until
from .run import words_of
from .tool import DSPARK, chat, dspark, nothing_is_left, result


@pytest.fixture(name="up")
def _up(bed: Bed) -> dict[str, Any]:
    report: dict[str, Any] = result(dspark(bed, "up", "-p", "agent-1m", "--output", "json").check())
    return report


def test_up_serves_a_chat_over_the_heads_management_address(bed: Bed, up: dict[str, Any]) -> None:
    assert up["state"] == "serving"
    assert up["base_url"] == f"http://{bed.head.lan_address}:8888/v1"
    answer = chat(bed, up["base_url"], "deepseek-v4-flash-0731")
    assert answer["choices"][0]["message"]["content"].strip()


def test_each_rank_is_started_as_itself_worker_first(bed: Bed, up: dict[str, Any]) -> None:
    (head,), (worker,) = bed.head.containers(), bed.worker.containers()
    assert worker.created <= head.created
    seen = {}
    for node, container in ((bed.head, head), (bed.worker, worker)):
        inspected = node.api.inspect(container.id)
        environment = dict(entry.split("=", 1) for entry in inspected["Config"]["Env"])
        rendered = node.read(f"{node.home}/.local/share/dspark/spark-pair/releases/{up['release']}/.env")
        assert '=""' not in rendered  # the image's own variables are its own affair: it bakes in an empty one
        seen[node.alias] = (inspected, environment)
    (head_seen, head_env), (worker_seen, worker_env) = seen[bed.head.alias], seen[bed.worker.alias]
    assert worker_seen["Created"] < head_seen["Created"]
    assert (head_env["VLLM_HOST_IP"], worker_env["VLLM_HOST_IP"]) == ("192.168.177.11", "192.168.177.12")
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"):
        assert head_env[name] == worker_env[name] == "enp1s0f0np0"
    head_argv, worker_argv = head_seen["Config"]["Cmd"], worker_seen["Config"]["Cmd"]
    assert "--headless" in worker_argv
    assert "--headless" not in head_argv
    assert head_argv[head_argv.index("--node-rank") + 1] == "0"
    assert worker_argv[worker_argv.index("--node-rank") + 1] == "1"


@pytest.mark.usefixtures("up")
def test_status_says_serving_and_tells_both_ranks(bed: Bed) -> None:
    told = result(dspark(bed, "status", "--output", "json").check())
    assert told["state"] == "serving"
    assert (told["profile"], told["family"]) == ("agent-1m", "anemll")
    assert [(rank["node"], rank["rank"], rank["state"], rank["restarts"]) for rank in told["ranks"]] == [
        ("head", 0, "running", 0),
        ("worker", 1, "running", 0),
    ]
    assert all(rank["container"] and rank["started_at"] for rank in told["ranks"])


@pytest.mark.usefixtures("up")
def test_down_leaves_nothing_and_a_second_down_has_nothing_to_do(bed: Bed) -> None:
    first = dspark(bed, "down").check()
    assert "stopped spark-pair-vllm-1" in first.stdout
    nothing_is_left(bed)
    again = dspark(bed, "down").check()
    assert again.stdout.splitlines() == ["head: nothing to stop", "worker: nothing to stop"]


def test_a_second_up_changes_nothing_and_says_so(bed: Bed, up: dict[str, Any]) -> None:
    before = [node.containers() for node in bed.nodes]
    again = dspark(bed, "up", "-p", "agent-1m", "--output", "json").check()
    assert result(again)["changed"] is False
    assert result(again)["pushed_bytes"] == 0
    assert result(again)["release"] == up["release"]
    assert [node.containers() for node in bed.nodes] == before
    assert "nothing was changed" in dspark(bed, "up", "-p", "agent-1m").check().stdout


def test_one_ssh_connection_a_node(bed: Bed) -> None:
    dspark(bed, "up", "-p", "agent-1m").check()
    assert [node.ssh_connections() for node in bed.nodes] == [1, 1]


def test_the_stage_c_family_boots_from_its_own_layout(bed: Bed) -> None:
    report = result(dspark(bed, "up", "-p", "stage-c-c12", "--output", "json").check())
    assert (report["family"], report["state"]) == ("stage-c", "serving")


@pytest.mark.parametrize("profile", ["coding-1m", "concurrent-200k", "agent-1m-conservative", "diagnostic-fp8"])
def test_every_published_shape_starts(bed: Bed, profile: str) -> None:
    dspark(bed, "up", "-p", profile).check()


def test_another_profile_asks_before_it_ends_what_serves(bed: Bed, up: dict[str, Any]) -> None:
    refused = dspark(bed, "up", "-p", "coding-1m")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert result(dspark(bed, "status", "--output", "json").check())["release"] == up["release"]
    dspark(bed, "up", "-p", "coding-1m", "--yes").check()
    assert result(dspark(bed, "status", "--output", "json").check())["profile"] == "coding-1m"


def test_a_dry_run_shows_the_steps_and_takes_none(bed: Bed) -> None:
    shown = dspark(bed, "up", "-n", "--output", "json").check()
    assert result(shown)["steps"][:3] == [
        f"push release {result(shown)['release']} to head and worker",
        "start the worker",
        "wait until the worker is at the rendezvous",
    ]
    nothing_is_left(bed)
    assert not bed.head.path("/home/nvidia/.local/share/dspark/spark-pair/releases").exists()


@pytest.mark.usefixtures("up")
def test_logs_hold_both_ranks_in_the_order_of_time(bed: Bed) -> None:
    lines = [json.loads(line) for line in dspark(bed, "logs", "--output", "json").check().stdout.splitlines()]
    assert {line["node"] for line in lines} == {"head", "worker"}
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    only = dspark(bed, "logs", "head", "--grep", "Application startup complete").check()
    assert only.stdout.startswith("head   | ")
    assert len(only.stdout.splitlines()) == 1


def test_logs_of_nothing_are_exit_8(bed: Bed) -> None:
    assert dspark(bed, "logs").returncode == 8


def test_interfaces_and_hcas_are_found_where_the_inventory_says_auto(bed: Bed) -> None:
    auto: dict[str, Any] = {f"{node}__fabric": None for node in ("head", "worker")}
    dspark(bed, "up", **auto).check()
    inspected = bed.head.api.inspect(bed.head.containers()[0].id)
    assert "NCCL_IB_HCA==rocep1s0f0,roceP2p1s0f0" in inspected["Config"]["Env"]


@pytest.mark.parametrize("alias", ["spark-worker-jump", "spark-worker-2222"])
def test_a_jump_host_and_another_port_work(bed: Bed, alias: str) -> None:
    dspark(bed, "up", worker__host=alias).check()


def test_an_interruption_before_the_wait_undoes_what_was_started(bed: Bed) -> None:
    bed.worker.stub(never_rendezvous=True)
    bed.inventory()
    process = bed.popen([DSPARK, "up"])
    wait_until(bed.worker.running)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "stopped on both nodes" in stderr
    nothing_is_left(bed)


def test_an_interruption_while_the_pair_boots_detaches(bed: Bed) -> None:
    for node in bed.nodes:
        node.stub(load_s=6)
    bed.inventory()
    process = bed.popen([DSPARK, "up"])
    stderr = words_of(process, "wait until the API answers")
    process.send_signal(signal.SIGINT)
    stderr += process.communicate(timeout=30)[1]
    assert process.returncode == 130, stderr
    assert "go on booting" in stderr
    told = dspark(bed, "status", "--output", "json")
    assert (told.returncode, result(told)["state"]) == (8, "booting")
    waited = dspark(bed, "up", "--output", "json").check()
    assert result(waited)["changed"] is False
