"""Know before you launch: what doctor says of two real hosts, healthy and broken."""

from __future__ import annotations

import json
import resource
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from dspark_deploy.remote.program import BOOTSTRAP, bundled

from .bed import Bed
from .faults import FaultyNode
from .run import Ran
from .test_up_faults import IMAGE, STAGE_C
from .tool import DSPARK, dspark, nothing_is_left, result

Broken = tuple[str, str, str | None]  # id, status, node


def said(ran: Ran) -> list[Broken]:
    """Everything that is not good, in the checks' order."""
    return [(each["id"], each["status"], each["node"]) for each in result(ran)["findings"] if each["status"] != "ok"]


def doctor(bed: Bed, *words: str, **inventory: Any) -> Ran:
    return dspark(bed, "doctor", "--output", "json", *words, **inventory)


def test_a_healthy_idle_pair_has_nothing_but_good_to_say(bed: Bed) -> None:
    dspark(bed, "doctor")  # looks into the image
    ran = doctor(bed).check()
    assert said(ran) == []
    assert result(ran)["unread"] == {}
    nothing_is_left(bed)


def test_one_ssh_connection_a_node_and_less_than_a_second_of_its_time(bed: Bed) -> None:
    dspark(bed, "doctor").check()
    assert [node.ssh_connections() for node in bed.nodes] == [1, 1]
    assert probe_cpu_s(bed.head) < 1.0


def test_a_serving_pair_has_nothing_but_good_to_say(bed: Bed) -> None:
    dspark(bed, "up").check()
    assert said(doctor(bed).check()) == []


def _stop_dockerd(node: FaultyNode) -> None:
    node.stop_dockerd()


def _remove_image(node: FaultyNode) -> None:
    node.remove_image(IMAGE)


def _other_content(node: FaultyNode) -> None:
    node.put_image("bed/exits-at-once:1", IMAGE)


def _no_compose(node: FaultyNode) -> None:
    node.use_compose("none")


def _little_memory(node: FaultyNode) -> None:
    node.set_memory(MemAvailable=80_000_000)


def _no_cache(node: FaultyNode) -> None:
    node.exec(["mv", node.hf_home, f"{node.hf_home}.away"]).check()


def _listener(node: FaultyNode) -> None:
    node.as_user(["sh", "-c", "setsid python3 -m http.server 8888 >/dev/null 2>&1 &"]).check()
    while 8888 not in node.listening():
        time.sleep(0.01)


def _narrow_end(node: FaultyNode) -> None:
    node.set_mtu(end=1500)


def _narrow_hop(node: FaultyNode) -> None:
    node.set_mtu(hop=1500)


def _no_gpu(node: FaultyNode) -> None:
    node.hide_gpu()


def _foreign(node: FaultyNode) -> None:
    node.docker("create", "--label", "com.docker.compose.project=spark-pair", IMAGE).check()


FAILS: list[tuple[str, Callable[[FaultyNode], None], list[str], str]] = [
    ("worker", _stop_dockerd, ["docker-access"], "does not run"),
    ("worker", _remove_image, ["image-present"], "never pulls"),
    ("worker", _other_content, ["image-same", "image-layout"], "it has no /usr/local/bin/vllm"),
    ("worker", _no_compose, ["compose-version"], "compose"),
    ("worker", _little_memory, ["memory-available"], "76.3 GiB are available"),
    ("worker", _no_cache, ["mount-source", "cache"], "does not exist"),
    ("head", _listener, ["ports-free"], "python3, pid"),
    ("worker", _narrow_end, ["fabric-mtu"], "worker enp1s0f0np0 1500"),
    ("worker", _narrow_hop, ["fabric-carries", "fabric-carries"], "9000 bytes do not come"),
    ("worker", _no_gpu, ["gpu-present"], "No devices were found"),
    ("worker", _foreign, ["foreign-containers"], "is not of this pair"),
]


@pytest.mark.parametrize(("role", "breaks", "checks", "words"), FAILS, ids=lambda each: getattr(each, "__name__", None))
def test_what_is_broken_gets_its_own_failure_and_no_other(
    bed: Bed, role: str, breaks: Callable[[FaultyNode], None], checks: list[str], words: str
) -> None:
    breaks(getattr(bed, role))
    ran = doctor(bed)
    assert ran.returncode == 3, ran
    assert [check for check, status, _ in said(ran) if status == "fail"] == checks
    failed = [each for each in result(ran)["findings"] if each["status"] == "fail"]
    assert any(words in each["message"] for each in failed), ran
    assert all(each["remedy"] for each in failed)
    nothing_of_the_look_is_left(bed)


def nothing_of_the_look_is_left(bed: Bed) -> None:
    for node in bed.nodes:
        if node.api.ping():
            assert [each for each in node.containers() if "dspark.look" in each.labels] == []


def test_an_image_of_the_other_family_is_refused_before_anything_starts(bed: Bed) -> None:
    for node in bed.nodes:
        node.put_image(STAGE_C, IMAGE)
    assert said(doctor(bed)) == [("image-layout", "fail", "head"), ("image-layout", "fail", "worker")]
    ran = dspark(bed, "up")
    assert ran.returncode == 3, ran
    assert "--family stage-c" in ran.stderr
    nothing_is_left(bed)


def test_an_index_that_moved_is_found_where_it_is_pinned(bed: Bed) -> None:
    pinned = {"head__fabric__gid_index": 3, "worker__fabric__gid_index": 5}
    doctor(bed, **pinned).check()
    bed.worker.set_gid_index(6)
    assert said(doctor(bed, **pinned)) == [("gid-pinned", "fail", "worker")]
    doctor(bed).check()


def test_a_pulled_cable_is_told_of_both_ends(bed: Bed) -> None:
    bed.worker.pull_cable()
    found = said(doctor(bed))
    assert ("fabric-interface", "fail", "worker") in found
    assert {check for check, _, _ in found} == {"fabric-interface"}


def test_a_node_that_can_not_be_reached_leaves_the_other_checked(bed: Bed) -> None:
    bed.worker.stop_sshd()
    ran = doctor(bed)
    assert ran.returncode == 5, ran
    assert ran.json()["errors"][0]["node"] == "worker"
    assert said(ran) == [("ssh-login", "fail", "worker")]
    assert any(each["node"] == "head" and each["id"] == "docker-access" for each in result(ran)["findings"])


def _earlyoom(node: FaultyNode) -> None:
    node.exec(["sh", "-c", "cp /usr/bin/sleep /tmp/earlyoom && (setsid /tmp/earlyoom 60 >/dev/null 2>&1 &)"]).check()


def _gpu_app(node: FaultyNode) -> None:
    node.use_gpu("4242, /usr/bin/ollama, [N/A]")


def _two_lanes(node: FaultyNode) -> None:
    node.write_hca("rocep1s0f0", "device/current_link_width", "2")


def _half(node: FaultyNode) -> None:
    node.set_memory(CmaTotal=0, CmaFree=940_604)


WARNS: list[tuple[Callable[[FaultyNode], None], str]] = [
    (_earlyoom, "earlyoom"),
    (_gpu_app, "gpu-free"),
    (_two_lanes, "pcie-lanes"),
    (_half, "cma-reserve"),
]


@pytest.mark.parametrize(("breaks", "check"), WARNS, ids=lambda each: getattr(each, "__name__", None))
def test_what_is_doubtful_gets_its_own_warning_and_stops_nothing(
    bed: Bed, breaks: Callable[[FaultyNode], None], check: str
) -> None:
    breaks(bed.worker)
    assert said(doctor(bed).check()) == [(check, "warn", "worker")]


def test_what_changed_since_the_last_good_start_is_told(bed: Bed) -> None:
    if not bed.has_newer_compose:
        pytest.skip("no second compose could be had for the bed")
    dspark(bed, "up").check()
    dspark(bed, "down").check()
    bed.worker.use_compose("newer")
    ran = doctor(bed).check()
    assert said(ran) == [("changed-since", "warn", "worker")]
    (told,) = [each["message"] for each in result(ran)["findings"] if each["status"] == "warn"]
    assert "compose 2.26" in told


def test_a_recording_is_judged_like_the_pair_and_names_nobody(bed: Bed) -> None:
    bed.worker.set_memory(MemAvailable=80_000_000)
    live = doctor(bed, "--record", "kept")
    replayed = bed.run([DSPARK, "doctor", "--replay", "kept", "--output", "json"])
    assert (live.returncode, replayed.returncode) == (3, 3), replayed
    ids = [[(each["id"], each["status"], each["node"]) for each in result(ran)["findings"]] for ran in (live, replayed)]
    assert ids[0] == ids[1]
    everything = "".join(path.read_text() for path in (bed.client / "kept").rglob("*") if path.is_file())
    for name in ("/home/nvidia", "/home/ubuntu", "spark-head", "spark-worker"):
        assert name not in everything
    document = json.loads((bed.client / "kept/worker.json").read_text())
    document["answers"]["probe"]["schema"] += 1
    (bed.client / "kept/worker.json").write_text(json.dumps(document))
    again = bed.run([DSPARK, "doctor", "--replay", "kept"])
    assert again.returncode == 2
    assert "schema" in again.stderr


def test_what_is_skipped_on_request_is_shown_and_recorded(bed: Bed) -> None:
    bed.worker.set_memory(MemAvailable=80_000_000)
    assert dspark(bed, "up").returncode == 3
    ran = dspark(bed, "up", "--skip", "memory-available", "--output", "json").check()
    (skipped,) = result(ran)["skipped"]
    assert skipped.startswith("memory-available: worker: 76.3 GiB")
    record = json.loads((bed.client / result(ran)["record"] / "run.json").read_text())
    assert record["skipped"] == [skipped]
    assert dspark(bed, "up", "--skip", "memory").returncode == 2


def test_the_text_has_failures_first_with_what_to_do(bed: Bed) -> None:
    bed.worker.remove_image(IMAGE)
    lines = dspark(bed, "doctor").stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("["))
    assert lines[first].startswith(f"[FAIL] worker: image {IMAGE}")
    assert lines[first + 1].startswith("       -> dspark pull")
    assert lines[-1].startswith("1 failed")


def probe_cpu_s(node: FaultyNode) -> float:
    """CPU seconds of a probe and of what it waits for."""
    request = {"pair": "spark-pair", "images": [IMAGE], "paths": ["~"], "ports": [8888]}
    envelope = {"marker": "m ", "payload": 0, "request": request}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [*node.entry(), "/usr/bin/python3", "-I", "-S", "-c", BOOTSTRAP]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(bundled("probe") + json.dumps(envelope).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"\n"
        assert json.loads(process.stdout.readline().removeprefix(b"m "))["docker"]["access"] == "ok"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
