"""The bed itself: two hosts that differ, faults that look like faults, and nothing left behind."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from . import images
from .bed import Bed
from .docker_api import DockerRefused
from .faults import FaultyNode
from .host import wait_until
from .keeper import pids_in
from .run import Ran


def ssh(bed: Bed, alias: str, command: str = "id -un", *options: str, timeout: float = 20) -> Ran:
    words: list[str | Path] = ["ssh", "-F", bed.ssh_config, "-o", "BatchMode=yes", "-o", "ConnectTimeout=2", *options]
    return bed.run([*words, alias, command], timeout=timeout)


def test_each_user_logs_in_with_the_key(bed: Bed) -> None:
    for node in bed.nodes:
        assert ssh(bed, node.alias).check().stdout == f"{node.user}\n"
        assert node.ssh_connections() == 1


@pytest.mark.parametrize("alias", ["spark-head-2222", "spark-worker-2222", "spark-worker-jump"])
def test_other_ports_and_the_jump_host_lead_there(bed: Bed, alias: str) -> None:
    assert ssh(bed, alias, "hostname").check().stdout.strip() == alias.rsplit("-", 1)[0]


@pytest.mark.parametrize(
    ("alias", "why"),
    [
        ("spark-head-stranger", "Permission denied"),
        ("spark-worker-unknown", "Host key verification failed"),
        ("spark-nowhere", "spark-nowhere|10.77.0.99"),
    ],
)
def test_broken_aliases_fail_as_they_should(bed: Bed, alias: str, why: str) -> None:
    ran = ssh(bed, alias)
    assert ran.returncode == 255
    assert any(word in ran.stderr for word in why.split("|")), ran


def test_nodes_differ_in_user_home_and_gid_index(bed: Bed) -> None:
    for node, index in ((bed.head, 3), (bed.worker, 5)):
        folder = "/sys/class/infiniband/rocep1s0f0/ports/1"
        told = ssh(bed, node.alias, f"pwd; cat {folder}/gids/{index} {folder}/gid_attrs/types/{index}").check()
        home, gid, kind = told.stdout.splitlines()
        assert (home, kind) == (node.home, "RoCE v2")
        assert gid.endswith("ffff:c0a8:b10b" if node is bed.head else "ffff:c0a8:b10c")


def test_hardware_looks_like_a_spark(bed: Bed) -> None:
    command = "nvidia-smi --query-gpu=name,memory.total --format=csv,noheader; ibdev2netdev; ls /dev/infiniband"
    told = ssh(bed, "spark-head", f"{command}; grep MemTotal /proc/meminfo; cat /sys/class/net/enp1s0f0np0/mtu").check()
    for line in ("NVIDIA GB10, [N/A]", "rocep1s0f0 port 1 ==> enp1s0f0np0 (Up)", "uverbs0", "125513728 kB", "9000"):
        assert line in told.stdout, told


def test_the_checkout_and_the_internet_are_out_of_sight(bed: Bed) -> None:
    for node in bed.nodes:
        assert node.exec(["ls", str(images.STANDIN)]).returncode != 0
        assert node.exec(["ip", "route", "get", "192.0.2.1"]).returncode != 0
    assert bed.run(["ip", "route", "get", "192.0.2.1"]).returncode != 0


@pytest.mark.parametrize("image", [images.ANEMLL, images.STAGE_C])
def test_both_images_hold_what_a_serving_script_needs(bed: Bed, image: str) -> None:
    family_python = "/usr/bin/python3" if image == images.ANEMLL else "/opt/env/bin/python"
    script = f"env cp --help > /dev/null && mkdir -p /a/b && cat /proc/1/comm && {family_python} -c 'import vllm.envs'"
    for node in bed.nodes:
        words = [
            "run",
            "--rm",
            "--gpus",
            "all",
            "--ulimit",
            "memlock=-1",
            "--network",
            "host",
            "--entrypoint",
            "/bin/bash",
        ]
        node.docker(*words, image, "-c", script).check()


@pytest.mark.parametrize("tag", [*images.STAGE_C_TAGS, images.ANEMLL])
def test_every_published_tag_is_there(bed: Bed, tag: str) -> None:
    for node in bed.nodes:
        assert tag in node.api.tags()


def test_an_image_can_be_taken_away_and_swapped(bed: Bed) -> None:
    bed.worker.remove_image(images.ANEMLL)
    assert bed.worker.docker("inspect", images.ANEMLL).returncode == 1
    bed.worker.restore_image(images.ANEMLL)
    bed.worker.put_image(images.STAGE_C, images.ANEMLL)
    tags = bed.worker.api.tags()
    assert tags[images.ANEMLL] == tags[images.STAGE_C]
    bed.reset()
    assert bed.worker.api.tags() == bed.worker.image_ids


def test_the_broken_image_exits_at_once(bed: Bed) -> None:
    done = bed.worker.docker("run", "--rm", "--network", "host", images.EXITS_AT_ONCE, "/bin/bash", "-c", "true")
    assert done.returncode == 3


def test_a_gpu_that_cannot_be_attached_fails_the_start(bed: Bed) -> None:
    bed.head.break_gpu("nvidia-container-cli: initialization error: driver not loaded")
    done = bed.head.docker("run", "--rm", "--gpus", "all", "--entrypoint", "/bin/true", images.ANEMLL)
    assert "driver not loaded" in done.stderr


@pytest.mark.parametrize(("version", "told"), [("stable", "2."), ("newer", "2.")])
def test_compose_is_v2_in_two_versions(bed: Bed, version: str, told: str) -> None:
    if version == "newer" and not bed.has_newer_compose:
        pytest.skip("no newer compose could be had")
    bed.head.use_compose(version)
    assert told in ssh(bed, "spark-head", "docker compose version --short").check().stdout


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (FaultyNode.stop_sshd, "Connection refused"),
        (FaultyNode.hang_sshd, "timed out"),
        (FaultyNode.pull_lan, "timed out|No route"),
        (FaultyNode.power_off, "timed out|No route"),
        (FaultyNode.new_host_key, "HOST IDENTIFICATION HAS CHANGED"),
        (FaultyNode.refuse_key, "Permission denied"),
    ],
)
def test_an_unreachable_node_shows_as_its_fault_and_a_reset_heals_it(
    bed: Bed, fault: Callable[[FaultyNode], None], message: str
) -> None:
    fault(bed.worker)
    ran = ssh(bed, "spark-worker")
    assert ran.returncode == 255
    assert any(part in ran.stderr for part in message.split("|")), ran
    bed.reset()
    ssh(bed, "spark-worker").check()


@pytest.mark.parametrize("fault", [FaultyNode.stop_dockerd, FaultyNode.kill_dockerd])
def test_a_node_without_dockerd_says_so(bed: Bed, fault: Callable[[FaultyNode], None]) -> None:
    fault(bed.head)
    assert "Cannot connect to the Docker daemon" in ssh(bed, "spark-head", "docker ps").stderr
    bed.reset()
    ssh(bed, "spark-head", "docker ps").check()


def test_a_pulled_cable_takes_the_carrier_from_both_ends(bed: Bed) -> None:
    def carriers() -> list[str]:
        return [node.exec(["cat", "/sys/class/net/enp1s0f0np0/carrier"]).stdout.strip() for node in bed.nodes]

    assert carriers() == ["1", "1"]
    bed.worker.pull_cable()
    assert bed.worker.exec(["cat", "/sys/class/infiniband/rocep1s0f0/ports/1/state"]).stdout.strip() == "1: DOWN"
    dial = ["bash", "-c", f"< /dev/tcp/{bed.head.fabric_address}/22"]
    assert bed.worker.exec(["timeout", "1", *dial]).returncode == 124
    bed.worker.plug_cable()
    assert carriers() == ["1", "1"]
    bed.worker.exec(["timeout", "10", *dial]).check()  # a first packet that is lost is sent again after a second


def test_a_full_disk_is_full(bed: Bed) -> None:
    bed.worker.fill_disk()
    assert "No space left" in ssh(bed, "spark-worker", "dd if=/dev/zero of=file bs=4k count=1").stderr
    bed.reset()
    ssh(bed, "spark-worker", "dd if=/dev/zero of=file bs=4k count=1").check()


def test_memory_and_gid_can_be_changed_while_the_node_runs(bed: Bed) -> None:
    bed.head.set_memory(MemAvailable=1_000_000)
    assert "1000000 kB" in bed.head.exec(["grep", "MemAvailable", "/proc/meminfo"]).stdout
    bed.head.set_gid_index(7)
    gid = bed.head.exec(["cat", "/sys/class/infiniband/rocep1s0f0/ports/1/gids/7"]).stdout
    assert "ffff:c0a8:b10b" in gid
    bed.reset()
    assert "1000000 kB" not in bed.head.exec(["cat", "/proc/meminfo"]).stdout


def test_a_reset_leaves_no_trace_of_a_test(bed: Bed) -> None:
    node = bed.worker
    words = ["--network", "host", "--restart", "always", "--entrypoint", "sleep", images.ANEMLL, "100"]
    node.docker("run", "-d", *words).check()
    node.as_user(
        ["sh", "-c", "mkdir -p .local/share/dspark/x && touch .local/share/dspark/x/y && echo '{}' > .a"]
    ).check()
    node.as_user(["sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 &"]).check()
    node.as_user(["sh", "-c", "rm -r .cache/huggingface/hub/*0731*/snapshots"]).check()
    bed.reset()
    assert node.containers() == []
    assert node.processes() == []
    assert sorted(path.name for path in node.path(node.home).iterdir()) == [".cache", ".ssh"]
    assert node.models_are_pristine


def test_a_reset_of_a_healthy_bed_is_quick(bed: Bed) -> None:
    began = time.monotonic()
    bed.reset()
    assert time.monotonic() - began < 0.5


def test_model_snapshots_have_the_layout_of_the_hub(bed: Bed) -> None:
    for node in bed.nodes:
        hub = f"{node.hf_home}/hub/models--deepseek-ai--DeepSeek-V4-Flash-0731"
        revision = node.read(f"{hub}/refs/main")
        assert revision == "9e165c30e2704aec5d9d593cce3eebd58bbef1cb"
        names = node.as_user(["ls", f"{hub}/snapshots/{revision}"]).check().stdout.split()
        assert sum(name.endswith("-of-00048.safetensors") for name in names) == 48
        encoder = f"{hub}/snapshots/{revision}/encoding/encoding_dsv4.py"
        assert "def encode_arguments_to_dsml" in node.as_user(["cat", encoder]).check().stdout
        assert (
            node.as_user(["cat", ".cache/huggingface/fraserprice/DeepSeek-V4-Flash-DSpark/config.json"]).returncode == 0
        )


def test_a_node_comes_back_from_power_off_with_its_containers(bed: Bed) -> None:
    words = ["--network", "host", "--restart", "unless-stopped", "--entrypoint", "sleep", images.ANEMLL, "100"]
    bed.head.docker("run", "-d", *words).check()
    bed.head.power_off()
    bed.head.power_on()
    wait_until(lambda: [container.state for container in bed.head.containers()] == ["running"])


def test_dockerd_refuses_as_it_really_does(bed: Bed) -> None:
    with pytest.raises(DockerRefused, match="No such image"):
        bed.head.api.untag("no/such:image")


def test_a_client_program_that_takes_too_long_is_killed(bed: Bed) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        bed.run(["sh", "-c", "sleep 100; true"], timeout=0.2)
    assert pids_in([bed.names.lan]) == []


def test_unlimited_memlock_is_granted_as_far_as_this_machine_can(bed: Bed) -> None:
    words = ["--network", "host", "--ulimit", "memlock=-1", "--name", "limits", "--entrypoint", "sleep", images.ANEMLL]
    bed.head.docker("run", "-d", *words, "100").check()
    bed.head.docker("exec", "limits", "true").check()
    assert bed.head.api.inspect("limits")["HostConfig"]["Ulimits"][0]["Hard"] == -1


def test_a_reset_ends_what_the_client_left_running(bed: Bed) -> None:
    process = bed.popen(["sleep", "100"])
    wait_until(lambda: process.pid in pids_in([bed.names.lan]), 5, "the program in the client's network namespace")
    bed.reset()
    assert process.wait(5) == -9
