"""What can be wrong with a pair: each fault its exit code, its node, its remedy, and nothing left behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .bed import Bed
from .host import wait_until
from .run import Ran
from .tool import DSPARK, dspark, error_lines, nothing_is_left, result

IMAGE = "ghcr.io/anemll/dspark-vllm-gx10:0.1.1"
STAGE_C = "vllm-dspark-runtime:dspark-nvfp4-stage-c"


def refused(ran: Ran, code: int, node: str) -> list[str]:
    """An error of that exit code about that node, in DESIGN's form: what, why, what to do."""
    assert ran.returncode == code, ran
    assert "Traceback" not in ran.stderr + ran.stdout
    lines = error_lines(ran)
    assert node in lines[0], ran
    assert lines[-1].startswith("  -> "), ran
    return lines


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("no-such-host.invalid", "no-such-host.invalid"),
        ("spark-worker-stranger", "ubuntu"),
        ("spark-worker-unknown", "SHA256:"),
    ],
)
def test_a_worker_that_can_not_be_entered_is_exit_5(bed: Bed, host: str, words: str) -> None:
    lines = refused(dspark(bed, "up", worker__host=host), 5, "worker")
    assert words in "\n".join(lines)
    nothing_is_left(bed)


def test_a_changed_host_key_is_refused_also_when_new_ones_are_accepted(bed: Bed) -> None:
    bed.worker.new_host_key()
    lines = refused(dspark(bed, "up", "--accept-new-host-keys"), 5, "worker")
    assert "ssh-keygen -f" in lines[-1]
    assert "-R '10.77.0.2'" in lines[-1]


def test_an_unknown_host_key_is_accepted_when_asked(bed: Bed) -> None:
    dspark(bed, "status", "--accept-new-host-keys", worker__host="spark-worker-unknown")
    assert dspark(bed, "down", worker__host="spark-worker-unknown").returncode == 0


def test_a_worker_without_power_is_exit_5(bed: Bed) -> None:
    bed.worker.power_off()
    refused(dspark(bed, "up"), 5, "worker")


def test_a_stopped_dockerd_is_exit_3(bed: Bed) -> None:
    bed.worker.stop_dockerd()
    lines = refused(dspark(bed, "up"), 3, "worker")
    assert "systemctl start docker" in lines[-1]
    assert bed.head.containers() == []


def test_a_missing_image_is_exit_3(bed: Bed) -> None:
    bed.worker.remove_image(IMAGE)
    lines = refused(dspark(bed, "up"), 3, "worker")
    assert IMAGE in lines[0]
    nothing_is_left(bed)


def test_an_image_of_the_other_family_is_exit_3_and_exit_4_from_serve_sh_where_that_is_skipped(bed: Bed) -> None:
    for node in bed.nodes:
        node.put_image(STAGE_C, IMAGE)
    seen = refused(dspark(bed, "up"), 3, "head")
    assert "--family stage-c" in seen[-1]
    lines = refused(dspark(bed, "up", "--skip", "image-layout"), 4, "worker")
    assert "/usr/local/bin/vllm" in "\n".join(lines)
    nothing_is_left(bed)


def test_a_worker_that_exits_at_once_is_exit_4(bed: Bed) -> None:
    bed.worker.stub(die_at="start", exit_code=3)
    lines = refused(dspark(bed, "up"), 4, "worker")
    assert "exit code 3" in lines[0]
    nothing_is_left(bed)


def test_a_worker_that_never_reaches_the_rendezvous_is_exit_4(bed: Bed) -> None:
    bed.worker.stub(never_rendezvous=True)
    lines = refused(dspark(bed, "up", "--rendezvous-timeout", "3s"), 4, "worker")
    assert "rendezvous" in lines[0]
    nothing_is_left(bed)


def test_a_head_that_never_answers_is_exit_4(bed: Bed) -> None:
    bed.head.stub(head_never_answers=True)
    lines = refused(dspark(bed, "up", "--timeout", "3s"), 4, "head")
    assert "--timeout" in lines[-1]
    nothing_is_left(bed)


@pytest.mark.parametrize(
    ("node", "fault"),
    [
        ("worker", {"die_at": "load", "exit_code": 1, "load_s": 1}),
        ("head", {"die_at": "load", "exit_code": 1, "load_s": 1}),
        ("head", {"wrong_model_name": "another"}),
        ("head", {"wrong_max_model_len": 4096}),
        ("head", {"api": "empty"}),
        ("head", {"api": "error"}),
    ],
)
def test_a_rank_that_dies_or_serves_something_else_is_exit_4(bed: Bed, node: str, fault: dict[str, object]) -> None:
    {"head": bed.head, "worker": bed.worker}[node].stub(**fault)
    refused(dspark(bed, "up"), 4, node)
    nothing_is_left(bed)


def test_a_taken_api_port_is_exit_3(bed: Bed) -> None:
    listener = bed.head.exec(["sh", "-c", "setsid python3 -m http.server 8888 >/dev/null 2>&1 & echo $!"]).check()
    try:
        lines = refused(dspark(bed, "up"), 3, "head")
        assert "8888" in lines[0]
    finally:
        bed.head.exec(["kill", listener.stdout.strip()])


def test_a_failed_start_brings_back_what_served(bed: Bed) -> None:
    before = result(dspark(bed, "up", "-p", "agent-1m", "--output", "json").check())["release"]
    ran = dspark(bed, "up", "-p", "coding-1m", "--set", "extra_flags.--no-such-flag=1", "--yes")
    refused(ran, 4, "worker")
    assert "serves again" in ran.stderr
    told = result(dspark(bed, "status", "--output", "json").check())
    assert (told["state"], told["release"]) == ("serving", before)


@pytest.mark.parametrize("breaks", ["power_off", "stop_sshd", "stop_dockerd"])
def test_down_ends_the_other_node_when_one_is_gone(bed: Bed, breaks: str) -> None:
    dspark(bed, "up").check()
    fault: Callable[[], None] = getattr(bed.worker, breaks)
    fault()
    ran = dspark(bed, "down")
    assert ran.returncode == 8, ran
    assert "worker" in ran.stdout
    assert bed.head.containers() == []


def test_status_with_a_node_gone_is_exit_5_and_tells_the_other(bed: Bed) -> None:
    dspark(bed, "up").check()
    bed.worker.power_off()
    ran = dspark(bed, "status", "--output", "json")
    assert ran.returncode == 5
    assert result(ran)["state"] == "unknown"
    assert [rank["state"] for rank in result(ran)["ranks"]] == ["running", "unreachable"]


def test_a_pair_with_one_rank_is_split_and_up_mends_it(bed: Bed) -> None:
    dspark(bed, "up").check()
    bed.worker.api.remove(bed.worker.containers()[0].id)
    told = dspark(bed, "status", "--output", "json")
    assert (told.returncode, result(told)["state"]) == (8, "split")
    dspark(bed, "up").check()
    assert result(dspark(bed, "status", "--output", "json").check())["state"] == "serving"


def test_a_second_run_meets_the_lock(bed: Bed) -> None:
    bed.worker.stub(never_rendezvous=True)
    bed.inventory()

    first = bed.popen([DSPARK, "up"])
    try:
        wait_until(bed.worker.running)
        ran = dspark(bed, "up")
        assert ran.returncode == 6, ran
        assert "dspark up" in ran.stderr
        assert dspark(bed, "status").returncode == 8
    finally:
        first.terminate()
        first.communicate(timeout=60)
    nothing_is_left(bed)
