from __future__ import annotations

import ast
import grp
import hashlib
import json
import os
import pwd
import socket
import time
from collections.abc import Mapping
from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from dspark_deploy.facts.node import Gid, Gpu, HcaPort, Listener, NodeFacts, PathFact, Process
from dspark_deploy.facts.parse import SCHEMA, parse_probe
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.program import bundled
from dspark_deploy.remote.programs import probe as probe_program
from dspark_deploy.remote.programs._engine import Engine, NoEngine
from tests.remote.stub_docker import StubDocker

PAIR = "spark-pair"
IMAGE = "ghcr.io/anemll/dspark-vllm-gx10:0.1.1"


def probe(local: LocalHost, *, images: tuple[str, ...] = (), paths: tuple[str, ...] = (), **more: float) -> NodeFacts:
    request = {"pair": PAIR, "images": images, "paths": paths, **more}
    return parse_probe("head", local.call("probe", request, timeout_s=15))


def plant(root: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.fixture
def root(docker: StubDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node's /proc, /sys, /etc and /dev."""
    del docker  # it has another root
    folder = tmp_path / "root"
    hca = "sys/class/infiniband/rocep1s0f0"
    plant(
        folder,
        {
            "etc/machine-id": "0123\n",
            "proc/sys/kernel/hostname": "spark-77\n",
            "proc/sys/kernel/random/boot_id": "4567\n",
            "proc/meminfo": "MemTotal:       125000000 kB\nMemFree:  1 kB\nMemAvailable:   120000000 kB\n",
            "proc/net/tcp": (
                "  sl  local_address rem_address   st\n"
                "   0: 0100007F:22B8 00000000:0000 0A 0\n"
                "   1: 0B01A8C0:61A8 0C01A8C0:D431 01 0\n"
            ),
            "proc/net/tcp6": (
                "  sl  local_address                         remote_address                        st\n"
                "   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0\n"
            ),
            "sys/class/net/bonding_masters": "",
            "sys/class/net/enp1s0f0np0/flags": "0x1003\n",
            "sys/class/net/enp1s0f0np0/carrier": "1\n",
            "sys/class/net/enp1s0f0np0/mtu": "9000\n",
            "sys/class/net/enp1s0f0np0/speed": "200000\n",
            "sys/class/net/enp1s0f0np0/address": "3c:6d:66:00:00:01\n",
            "sys/class/net/enp1s0f1np1/flags": "0x1002\n",
            "sys/class/net/enp1s0f1np1/mtu": "1500\n",
            "sys/class/net/enp1s0f1np1/speed": "-1\n",
            f"{hca}/ports/1/state": "4: ACTIVE\n",
            f"{hca}/ports/1/link_layer": "Ethernet\n",
            f"{hca}/ports/1/gids/0": "fe80:0000:0000:0000:3e6d:66ff:fe00:0001\n",
            f"{hca}/ports/1/gids/3": "0000:0000:0000:0000:0000:ffff:c0a8:b10b\n",
            f"{hca}/ports/1/gids/4": "0000:0000:0000:0000:0000:0000:0000:0000\n",
            f"{hca}/ports/1/gid_attrs/types/3": "RoCE v2\n",
            f"{hca}/ports/1/gid_attrs/ndevs/3": "enp1s0f0np0\n",
            f"{hca}/device/net/enp1s0f0np0": "",
            "dev/infiniband/uverbs0": "",
        },
    )
    monkeypatch.setenv("DSPARK_NODE_ROOT", str(folder))
    return folder


@pytest.fixture
def ip(docker: StubDocker) -> None:
    """An `ip` that knows one address."""
    known = [
        {},
        {"ifname": "enp1s0f0np0", "addr_info": [{"family": "inet", "local": "192.168.177.11", "prefixlen": 24}]},
    ]
    command = docker.folder / "ip"
    command.write_text(f"#!/bin/sh\necho '{json.dumps(known)}'\n")
    command.chmod(0o755)


@pytest.mark.usefixtures("root", "ip")
def test_kernel_and_network_are_read_below_the_node_s_root(local: LocalHost) -> None:
    facts = probe(local)
    assert (facts.hostname, facts.machine_id, facts.boot_id) == ("spark-77", "0123", "4567")
    assert facts.memory is not None
    assert (facts.memory.total, facts.memory.available) == (125000000 * 1024, 120000000 * 1024)
    up, down = facts.netdevs
    assert (up.name, up.up, up.mtu, up.speed_mbps, up.mac) == ("enp1s0f0np0", True, 9000, 200000, "3c:6d:66:00:00:01")
    assert up.addresses == (IPv4Interface("192.168.177.11/24"),)
    assert (down.name, down.up, down.speed_mbps, down.addresses) == ("enp1s0f1np1", False, None, ())
    gids = (
        Gid(0, "fe80:0000:0000:0000:3e6d:66ff:fe00:0001", None, None),
        Gid(3, "0000:0000:0000:0000:0000:ffff:c0a8:b10b", "RoCE v2", "enp1s0f0np0"),
    )
    assert facts.hca_ports == (HcaPort("rocep1s0f0", 1, "ACTIVE", "Ethernet", "enp1s0f0np0", gids),)
    assert facts.rdma_devices
    assert facts.listeners == (Listener("127.0.0.1", 8888), Listener("::", 22))
    assert facts.missing == {"gpus": "nvidia-smi: not found on PATH"}


@pytest.mark.usefixtures("docker")
def test_a_node_without_any_of_it_says_what_is_missing(
    local: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSPARK_NODE_ROOT", str(tmp_path / "empty"))
    facts = probe(local)
    assert facts.machine_id is None
    assert facts.memory is None
    assert (facts.netdevs, facts.hca_ports, facts.listeners, facts.rdma_devices) == ((), (), (), False)
    assert {"machine_id", "boot_id", "memory", "netdevs"} <= set(facts.missing)


def test_images_and_containers_come_from_the_engine(local: LocalHost, docker: StubDocker) -> None:
    image = {
        "Id": "sha256:1",
        "RootFS": {"Layers": ["sha256:a", "sha256:b"]},
        "Config": {"Env": ["A=b"], "Cmd": None, "Labels": {"x": "y"}},
        "Architecture": "arm64",
        "RepoDigests": ["ghcr.io/anemll/dspark-vllm-gx10@sha256:2"],
    }
    ours = {
        "Id": "c1",
        "Name": "/spark-pair-vllm-1",
        "Image": "sha256:1",
        "RestartCount": 2,
        "State": {"Status": "exited", "StartedAt": "2026-09-01T10:00:00Z", "ExitCode": 137, "OOMKilled": True},
        "Config": {"Labels": {"dspark.pair": PAIR}, "StopTimeout": 7, "Env": ["SECRET=x"]},
    }
    docker.answer(f"GET /images/{IMAGE}/json", image)
    ask = "GET /containers/json?all=1&filters="
    docker.answer(f"{ask}%7B%22label%22:%20%5B%22dspark.pair%3D{PAIR}%22%5D%7D", [{"Id": "c1"}])
    project = f"%7B%22label%22:%20%5B%22com.docker.compose.project%3D{PAIR}%22%5D%7D"
    docker.answer(f"{ask}{project}", [{"Id": "c1"}, {"Id": "gone-meanwhile"}])
    docker.answer("GET /containers/c1/json", ours)
    for chunked in (False, True):
        docker.set(chunked=chunked)
        facts = probe(local, images=(IMAGE, "unknown:1"))
        assert (facts.docker.access, facts.docker.version, facts.docker.compose) == ("ok", "28.2.2", "2.36.0")
        (known,) = facts.images
        assert (known.reference, known.id, known.layers) == (IMAGE, "sha256:1", ("sha256:a", "sha256:b"))
        assert (known.architecture, known.digests) == ("arm64", ("ghcr.io/anemll/dspark-vllm-gx10@sha256:2",))
        (container,) = facts.containers
        assert (container.name, container.state, container.exit_code) == ("spark-pair-vllm-1", "exited", 137)
        assert (container.restarts, container.oom_killed, container.stop_timeout_s) == (2, True, 7)


def test_images_that_run_differently_have_another_config(local: LocalHost, docker: StubDocker) -> None:
    def config_of(config: Mapping[str, object]) -> str:
        docker.answer(f"GET /images/{IMAGE}/json", {"Id": "sha256:1", "Config": config})
        return probe(local, images=(IMAGE,)).images[0].config

    assert config_of({"Env": ["A=b"], "Cmd": None}) == config_of({"Env": ["A=b"], "Cmd": [], "Labels": {"c": "d"}})
    assert config_of({"Env": ["A=b"]}) != config_of({"Env": ["A=c"]})


@pytest.mark.parametrize(
    ("said", "access"),
    [
        (
            "failed to open the raw stream connection: dial unix /var/run/docker.sock: connect: permission denied",
            "permission",
        ),
        (
            "failed to open the raw stream connection: dial unix /var/run/docker.sock: connect: connection refused",
            "down",
        ),
        ("dial unix /var/run/docker.sock: connect: no such file or directory", "down"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "down"),
        ("something else", "unknown"),
    ],
)
def test_why_docker_does_not_answer_is_told_apart(local: LocalHost, docker: StubDocker, said: str, access: str) -> None:
    docker.set(error=said)
    facts = probe(local)
    assert (facts.docker.access, facts.docker.detail) == (access, said)


def test_docker_that_is_not_installed_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoEngine, match=r"docker: not found on PATH \(/nowhere\)") as failed:
        Engine(timeout_s=1).version()
    assert failed.value.access == "absent"


def test_a_missing_compose_plugin_is_told_with_its_own_words(local: LocalHost, docker: StubDocker) -> None:
    docker.set(compose="")
    facts = probe(local)
    assert facts.docker.compose is None
    assert facts.missing["compose"] == "docker: 'compose' is not a docker command."


@pytest.mark.usefixtures("docker")
def test_the_compose_plugin_is_asked_itself_where_docker_would_find_it(local: LocalHost, home: Path) -> None:
    metadata = '{"SchemaVersion": "0.1.0", "Version": "v2.40.3"}'
    plugin = f"#!/bin/sh\n[ $1 = docker-cli-plugin-metadata ] && echo '{metadata}'\n"
    plant(home, {".docker/cli-plugins/docker-compose": plugin})
    (home / ".docker/cli-plugins/docker-compose").chmod(0o755)
    assert probe(local).docker.compose == "2.40.3"


@pytest.mark.usefixtures("docker")
def test_a_context_of_the_user_s_is_named(local: LocalHost, home: Path) -> None:
    plant(home, {".docker/config.json": '{"currentContext": "rootless"}'})
    assert probe(local).docker.context == "rootless"


def test_an_engine_that_never_answers_costs_no_more_than_the_limit(local: LocalHost, docker: StubDocker) -> None:
    docker.answer("GET /version", None, status=0)
    began = time.monotonic()
    facts = probe(local, limit_s=0.5)
    assert time.monotonic() - began < 2
    assert facts.docker.access == "unknown"
    assert "no answer within 0.5 s" in facts.missing["docker"]
    assert facts.hostname  # what was read before is there


@pytest.mark.usefixtures("docker")
def test_paths_are_told_as_the_user_sees_them(local: LocalHost, home: Path) -> None:
    plant(home, {"models/config.json": "{}"})
    (home / "link").symlink_to("models")
    asked = ("~/models", "~/link", "~/models/config.json", "~/new/deep", "~/models/config.json/below", "/dev/null")
    kinds = {path.path: (path.kind, path.writable) for path in probe(local, paths=asked).paths}
    assert kinds == {
        f"{home}/models": ("directory", True),
        f"{home}/link": ("directory", True),
        f"{home}/models/config.json": ("file", True),
        f"{home}/new/deep": ("absent", True),
        f"{home}/models/config.json/below": ("absent", True),
        "/dev/null": ("other", True),
    }


@pytest.mark.usefixtures("docker")
def test_free_space_of_an_absent_path_is_that_of_its_disk(local: LocalHost, home: Path) -> None:
    (fact,) = probe(local, paths=("~/absent",)).paths
    disk = os.statvfs(home)
    assert isinstance(fact, PathFact)
    assert fact.free_bytes is not None
    assert abs(fact.free_bytes - disk.f_bavail * disk.f_frsize) < 2**30


@pytest.mark.usefixtures("docker")
def test_only_whole_releases_are_told(local: LocalHost, home: Path) -> None:
    content = "services: {}\n"
    manifest = {"files": {"compose.yaml": {"mode": "0600", "sha256": hashlib.sha256(content.encode()).hexdigest()}}}
    releases = home / f".local/share/dspark/{PAIR}/releases"
    plant(
        releases,
        {
            "whole/compose.yaml": content,
            "whole/manifest.json": json.dumps(manifest),
            "tampered/compose.yaml": "services: {x: {}}\n",
            "tampered/manifest.json": json.dumps(manifest),
            "lacking/manifest.json": json.dumps(manifest),
            "without/compose.yaml": content,
            "odd/manifest.json": "[]",
            ".part-1/compose.yaml": content,
            ".part-1/manifest.json": json.dumps(manifest),
        },
    )
    assert probe(local).releases == ("whole",)


@pytest.mark.parametrize("program", ["run", "lock", "receive", "probe", "look", "link", "pull", "remember", "memory"])
def test_programs_run_on_python_3_10(program: str) -> None:
    ast.parse(bundled(program).split(b"\n", 1)[1], feature_version=(3, 10))


def test_system_and_memory_are_told(local: LocalHost, root: Path) -> None:
    user = local.call("probe", {"pair": PAIR, "images": [], "paths": []}, timeout_s=15)["user"]
    plant(
        root,
        {
            "etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n',
            "etc/dgx-release": 'DGX_NAME="DGX Spark"\nDGX_SWBUILD_VERSION="7.2.3"\n',
            f"var/lib/systemd/linger/{user}": "",
            "proc/meminfo": (
                "MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 60 kB\nCached: 40 kB\n"
                "SwapTotal: 8 kB\nSwapFree: 2 kB\nCmaTotal: 0 kB\nCmaFree: 5 kB\n"
            ),
        },
    )
    facts = probe(local)
    system, memory = facts.system, facts.memory
    assert (system.os, system.build, system.linger, system.earlyoom) == ("Ubuntu 24.04.3 LTS", "7.2.3", True, False)
    assert system.kernel == os.uname().release
    assert memory is not None
    assert (memory.free, memory.cached, memory.swap_total - memory.swap_free) == (10240, 40960, 6144)
    assert (memory.cma_total, memory.cma_free) == (0, 5120)


def test_the_largest_processes_and_earlyoom_are_named(local: LocalHost, root: Path) -> None:
    pages = 2**30 // os.sysconf("SC_PAGE_SIZE")
    for pid, (name, size) in {10: ("VLLM::Worker", 3), 11: ("earlyoom", 0), 12: ("a (b) c", 2)}.items():
        fields = ["S", *("0" for _ in range(20)), str(size * pages), "0"]
        plant(root, {f"proc/{pid}/stat": f"{pid} ({name}) {' '.join(fields)}\n"})
    plant(root, {"proc/10/cgroup": f"0::/system.slice/docker-{'c' * 64}.scope\n"})
    facts = probe(local)
    assert facts.system.earlyoom
    assert facts.memory is not None
    assert facts.memory.consumers == (
        Process(10, "VLLM::Worker", 3 * 2**30, "c" * 64),
        Process(12, "a (b) c", 2 * 2**30),
    )


def smi(docker: StubDocker, gpus: str, apps: str, code: int = 0) -> None:
    program = docker.folder / "nvidia-smi"
    program.write_text(f'#!/bin/sh\ncase $1 in *gpu*) echo "{gpus}" ;; *) echo "{apps}" ;; esac\nexit {code}\n')
    program.chmod(0o755)


def test_a_gpu_without_memory_of_its_own_is_a_gpu(local: LocalHost, docker: StubDocker, root: Path) -> None:
    plant(root, {"proc/990/cgroup": f"1:name=systemd:/docker/{'d' * 64}\n"})
    smi(docker, "NVIDIA GB10, 580.95.05", "990, /usr/bin/python3, [N/A]\n77, ollama, 412")
    facts = probe(local)
    assert facts.gpus == (Gpu("NVIDIA GB10", "580.95.05"),)
    assert facts.gpu_processes == (Process(990, "python3", None, "d" * 64), Process(77, "ollama", 412 << 20))


@pytest.mark.usefixtures("root")
def test_a_driver_that_is_not_loaded_is_told_in_its_own_words(local: LocalHost, docker: StubDocker) -> None:
    smi(docker, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "", code=9)
    facts = probe(local)
    assert facts.gpus == ()
    assert facts.missing["gpus"].startswith("NVIDIA-SMI has failed")


@pytest.mark.usefixtures("docker")
def test_firmware_lanes_and_errors_of_an_hca_are_told(local: LocalHost, root: Path) -> None:
    hca = "sys/class/infiniband/rocep1s0f0"
    plant(
        root,
        {
            f"{hca}/fw_ver": "28.45.4028\n",
            f"{hca}/device/current_link_width": "2\n",
            f"{hca}/device/max_link_width": "4\n",
            f"{hca}/device/aer_dev_fatal": "Undefined 0\nDLP 0\nTOTAL_ERR_FATAL 1\n",
            f"{hca}/device/aer_dev_nonfatal": "Undefined 0\nTOTAL_ERR_NONFATAL 2\n",
        },
    )
    (port,) = probe(local).hca_ports
    assert (port.firmware, port.link_width, port.most_lanes, port.pcie_errors) == ("28.45.4028", 2, 4, 3)


@pytest.mark.usefixtures("root")
def test_the_engine_s_own_place_and_kind_are_told(local: LocalHost, docker: StubDocker, home: Path) -> None:
    info = {
        "DockerRootDir": str(home),
        "SecurityOptions": ["name=seccomp", "name=rootless"],
        "Runtimes": {"nvidia": {}},
    }
    docker.answer("GET /info", info)
    known = probe(local).docker
    assert (known.root, known.rootless, known.snap, known.gpu) == (str(home), True, False, True)
    assert known.root_free_bytes is not None
    docker.answer("GET /info", {"DockerRootDir": "/var/snap/docker/common/var-lib-docker", "Runtimes": {"runc": {}}})
    known = probe(local).docker
    assert (known.rootless, known.snap, known.gpu, known.root_free_bytes) == (False, True, False, None)


@pytest.mark.usefixtures("docker")
def test_a_mount_is_told_by_its_kind(local: LocalHost, home: Path, root: Path) -> None:
    mounts = f"/dev/vda / ext4 rw 0 0\nnas:/hub {home}/hub\\040two nfs4 rw 0 0\n"
    plant(root, {"proc/self/mounts": mounts})
    (home / "hub two").mkdir()
    kinds = [path.filesystem for path in probe(local, paths=("~", "~/hub two/models", "~/hub")).paths]
    assert kinds == ["ext4", "nfs4", "ext4"]


@pytest.mark.usefixtures("docker")
def test_who_listens_is_named_for_the_ports_that_matter(
    local: LocalHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del tmp_path
    monkeypatch.setenv("DSPARK_NODE_ROOT", "")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = local.call("probe", {"pair": PAIR, "images": [], "paths": [], "ports": [port]}, timeout_s=15)
    owners = {each["port"]: each["owner"] for each in found["listeners"]}
    assert f"pid {os.getpid()} of " in owners[port]
    assert [owner for other, owner in owners.items() if other != port and owner] == []


def test_the_schema_is_the_one_that_is_read(local: LocalHost, docker: StubDocker) -> None:
    del docker
    assert local.call("probe", {"pair": PAIR, "images": [], "paths": []}, timeout_s=15)["schema"] == SCHEMA


@pytest.mark.parametrize(("groups", "pending"), [((27,), True), ((27, 990), False)])
def test_a_group_that_this_session_does_not_have_yet_is_told(
    monkeypatch: pytest.MonkeyPatch, groups: tuple[int, ...], pending: bool
) -> None:
    user = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(grp, "getgrnam", lambda name: grp.struct_group((name, "x", 990, [user])))
    monkeypatch.setattr(os, "getgroups", lambda: list(groups))
    monkeypatch.setattr(os, "getegid", lambda: 1000)
    assert probe_program._group_pending() is pending
