"""One fault each, as facts show it, and the one finding that it gets. docs/checks.md names the tests by these rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Interface
from typing import Any

from dspark_deploy.facts.node import Docker, Gid, HcaPort, Listener, Look, Netdev, Noted, PathFact, Process, System
from dspark_deploy.inventory import Inventory
from dspark_deploy.patch import Patch
from tests.checks.cases import granted, inventory, look
from tests.samples import IMAGE_ID, container, docker, image, memory, node_facts

GIB = 2**30
PROPOSER = "/usr/local/lib/python3.12/dist-packages/vllm/v1/spec_decode/dspark_proposer.py"
ANOTHER_ID = "sha256:" + "2" * 64
ANOTHER_DIGEST = "ghcr.io/anemll/dspark-vllm-gx10@sha256:" + "d" * 64


@dataclass(frozen=True)
class Fault:
    """What is wrong, the rows of the failure table that it is an example of, and the check that says so."""

    check: str
    failures: tuple[str, ...] = ()  # rows that the finding carries, among those that its check covers
    head: Mapping[str, Any] = field(default_factory=dict)
    worker: Mapping[str, Any] = field(default_factory=dict)
    node: str | None = None
    says: str = ""  # in the message
    pair: Inventory | None = None
    profile: str = "agent-1m"
    given: Mapping[str, str] = field(default_factory=dict)
    heard: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.check} {self.says}".strip()


def ports(node: str, **changes: Any) -> tuple[HcaPort, ...]:
    """The HCA ports of a healthy node, the second with changes."""
    first, second = node_facts(node).hca_ports
    return first, replace(second, **changes)


def netdevs(node: str, **changes: Any) -> tuple[Netdev, ...]:
    """The interfaces of a healthy node, the first with changes."""
    first, second = node_facts(node).netdevs
    return replace(first, **changes), second


def _system(**changes: Any) -> System:
    return replace(node_facts().system, **changes)


def _cache(kind: str = "directory", **more: Any) -> tuple[PathFact, ...]:
    return (PathFact("/home/ubuntu/.cache/huggingface", kind, **{"free_bytes": 2**40, **more}),)  # type: ignore[arg-type]  # a word of its Literal


def _patched(bound_to: str) -> Inventory:
    """A pair with a file of its own over one of the image's."""
    patch = Patch(folder="/recipe", family="anemll", image=bound_to, files={"dspark_proposer.py": PROPOSER})
    return inventory().model_copy(update={"patches": (patch,)})


def _with_proposer(found: Look) -> Look:
    return replace(found, present=(*found.present, PROPOSER))


def _moved_gid(node: str, index: int) -> tuple[HcaPort, ...]:
    return tuple(replace(port, gids=(replace(port.gids[0], index=index),)) for port in node_facts(node).hca_ports)


_ONE_HCA = {"fabric": {"interface": "enp1s0f0np0", "address": "192.168.177.11", "hca": "=rocep1s0f0"}}
_PINNED = {"fabric": {"interface": "enp1s0f0np0", "address": "192.168.177.12", "gid_index": 3}}
_PARTED = tuple(
    Gid(index, gid, "RoCE v2", name)
    for index, gid, name in (
        (5, "0000:0000:0000:0000:0000:ffff:c0a8:b10c", "enp1s0f0np0"),
        (7, "0000:0000:0000:0000:0000:ffff:c0a8:b20c", "enP2p1s0f0np0"),
    )
)
_NOTED = Noted(
    "2026-08-30T09:00:00+00:00", {"boot": "boot-head", "kernel": "6.11.0-1016-nvidia", "driver": "580.95.05"}
)

FAILS: tuple[Fault, ...] = (
    # --- A. Image ---
    Fault("image-same", ("F01", "F10"), worker={"images": (image(layers=("sha256:aa", "sha256:zz")),)}),
    Fault("image-same", ("F01", "F10"), worker={"images": (image(config="beef"),)}, says=IMAGE_ID[:19]),
    Fault("image-present", ("F02",), worker={"images": ()}, node="worker", says="never pulls"),
    Fault(
        "image-architecture",
        ("F123",),
        worker={"architecture": "x86_64"},
        node="worker",
        says="is arm64, the node is amd64",
    ),
    Fault("image-layout", ("F03",), worker={"looks": (look("stage-c"),)}, node="worker", says="laid out as stage-c"),
    Fault(
        "patch-image",
        ("F07",),
        worker={"images": (image(id=ANOTHER_ID),), "looks": (_with_proposer(look(of=image(id=ANOTHER_ID))),)},
        head={"looks": (_with_proposer(look()),)},
        pair=_patched(IMAGE_ID),
        node="worker",
        says=f"is bound to {IMAGE_ID[:15]}",
    ),
    Fault(
        "patch-target",
        ("F07",),
        head={"looks": (_with_proposer(look()),)},
        worker={"looks": (replace(look(), absent=(*look().absent, PROPOSER)),)},
        pair=_patched(image().reference),
        node="worker",
        says="which a file is to be mounted over",
    ),
    Fault(
        "image-digest",
        ("F11",),
        worker={"images": (image(digests=(ANOTHER_DIGEST,)),)},
        node="worker",
        given={"image": "ghcr.io/anemll/dspark-vllm-gx10:0.1.1@sha256:" + "a" * 64},
    ),
    # --- C. Memory ---
    Fault(
        "memory-available",
        ("F29",),
        worker={
            "memory": memory(
                available=100 * GIB, consumers=(Process(990, "VLLM::Worker", 9 * GIB), Process(2, "ollama", 3 * GIB))
            )
        },
        node="worker",
        says="most is held by VLLM::Worker (pid 990) with 9.0 GiB",
    ),
    # --- D. Fabric ---
    Fault("gid-pinned", ("F42",), pair=inventory(worker=_PINNED), node="worker", says="GID index 3 is not usable"),
    Fault(
        "hca-selector",
        ("F43",),
        pair=inventory(head={"fabric": {"hca": "=rocep9s9"}}),
        node="head",
        says="there is: rocep1s0f0:1 ACTIVE",
    ),
    Fault(
        "gid-common",
        ("F44",),
        worker={"hca_ports": (ports("worker", gids=_PARTED[:1])[0], ports("worker", gids=_PARTED[1:])[1])},
        node="worker",
        says="rocep1s0f0:1 [5]; roceP2p1s0f0:1 [7]",
    ),
    Fault(
        "fabric-interface",
        ("F45",),
        pair=inventory(worker={"fabric": {"interface": "enp1s0f1np1"}}),
        node="worker",
        says="there is: enp1s0f0np0 up 192.168.177.12/24",
    ),
    Fault("fabric-interface", ("F45",), head={"netdevs": netdevs("head", up=False)}, node="head", says="is down"),
    Fault("fabric-interface", ("F45",), head={"netdevs": netdevs("head", addresses=())}, node="head", says="no IPv4"),
    Fault(
        "fabric-subnet",
        ("F46",),
        pair=inventory(head={"fabric": {}}, worker={"fabric": {}}),
        worker={"netdevs": (netdevs("worker", addresses=(IPv4Interface("192.168.9.12/24"),))[0],)},
        says="no two interfaces of the nodes face each other",
    ),
    Fault(
        "fabric-address",
        ("F47",),
        pair=inventory(
            worker={"fabric": {"interface": "enp1s0f0np0", "address": "192.168.177.11"}}, head={"fabric": {}}
        ),
        node="worker",
        says="enp1s0f0np0 has 192.168.177.12, not 192.168.177.11",
    ),
    Fault(
        "fabric-mtu", ("F49",), worker={"netdevs": netdevs("worker", mtu=1500)}, says="head enp1s0f0np0 9000, worker"
    ),
    Fault("fabric-carries", ("F49",), heard={"head": {"full": False}}, node="head", says="from worker to head"),
    Fault("rdma-device", ("F51",), head={"rdma_devices": False}, node="head"),
    Fault("ports-free", ("F56",), head={"listeners": (Listener("::", 25000),)}, node="head", says="rendezvous"),
    Fault(
        "ports-free",
        ("F82",),
        head={"listeners": (Listener("127.0.0.1", 8888, "jupyter-lab, pid 2211 of nvidia"),)},
        node="head",
        says="jupyter-lab, pid 2211",
    ),
    # --- B and E: what is mounted, and the nodes ---
    Fault("mount-source", ("F24", "F71"), worker={"paths": _cache("absent")}, node="worker", says="does not exist"),
    Fault("mount-source", ("F24", "F71"), worker={"paths": _cache("file")}, node="worker", says="is a file"),
    Fault("disk-free", ("F16",), worker={"docker": docker(root_free_bytes=10**8)}, node="worker", says="for Docker"),
    Fault("two-machines", ("F41",), worker={"boot_id": "boot-head", "hostname": "spark-head"}),
    Fault("foreign-containers", worker={"containers": (container("worker", labels={}),)}, node="worker"),
    Fault("docker-access", worker={"docker": Docker("down", "Cannot connect to the Docker daemon")}, node="worker"),
    Fault("docker-access", head={"docker": Docker("permission", "permission denied")}, node="head", says="may not use"),
    Fault(
        "docker-access",
        head={"docker": Docker("permission", "permission denied", group_pending=True)},
        node="head",
        says="in group docker, but this login is not",
    ),
    Fault("docker-access", head={"docker": Docker("absent", "docker: not found")}, node="head", says="not installed"),
    Fault("compose-version", worker={"docker": docker(compose=None)}, node="worker", says="1.x is not usable"),
    Fault("compose-version", worker={"docker": docker(compose="2.19.1")}, node="worker", says="older than 2.20"),
    Fault("docker-snap", worker={"docker": docker(snap=True, root="/var/snap/docker")}, node="worker"),
    Fault("docker-rootless", worker={"docker": docker(rootless=True)}, node="worker", says="would stop when"),
    Fault(
        "docker-rootless",
        ("F50",),
        worker={"docker": docker(rootless=True), "system": _system(linger=True, memlock_bytes=8192)},
        node="worker",
        says="may lock only 8192 bytes",
    ),
    Fault("nvidia-runtime", ("F124",), worker={"docker": docker(gpu=False)}, node="worker"),
    Fault(
        "gpu-present",
        ("F124",),
        worker={"gpus": (), "missing": {"gpus": "no devices were found"}},
        node="worker",
        says="no devices",
    ),
)

WARNS: tuple[Fault, ...] = (
    Fault(
        "image-digest",
        ("F11",),
        worker={"images": (image(digests=(ANOTHER_DIGEST,)),)},
        node="worker",
        says="published",
    ),
    Fault("image-variables", ("F05",), head={"looks": (look(without=("VLLM_USE_B12X_MOE",)),)}, node="head"),
    Fault(
        "rank-granted",
        ("F08", "F50"),
        worker={"containers": (container("worker", granted=granted(mounts=())),)},
        head={"containers": (container("head", granted=granted()),)},
        node="worker",
        says="its mount",
    ),
    Fault(
        "rank-granted",
        ("F08", "F50"),
        worker={"containers": (container("worker", granted=granted(memlock_bytes=None)),)},
        head={"containers": (container("head", granted=granted()),)},
        node="worker",
        says="memlock",
    ),
    Fault("changed-since", ("F15",), head={"noted": _NOTED}, node="head", says="kernel 6.11.0-1016-nvidia -> 6.14"),
    Fault(
        "gpu-free", ("F29",), worker={"gpu_processes": (Process(77, "ollama", 3 * GIB),)}, node="worker", says="ollama"
    ),
    Fault(
        "memory-available", ("F29",), worker={"memory": memory(available=102 * GIB)}, node="worker", says="fits by less"
    ),
    Fault(
        "kv-pool", ("F34", "F35"), given={"max_num_batched_tokens": "4096"}, says="no boot of this shape is on record"
    ),
    Fault("page-cache", ("F30",), worker={"memory": memory(free=2 * GIB, cached=100 * GIB)}, node="worker"),
    Fault(
        "swap-used", ("F30",), worker={"memory": memory(swap_free=9 * GIB)}, node="worker", says="7.0 GiB lie in swap"
    ),
    Fault("cma-reserve", ("F33",), worker={"memory": memory(cma_total=0, cma_free=940604 * 1024)}, node="worker"),
    Fault("same-kernel", ("F33",), worker={"system": _system(kernel="7.0.0-1019-nvidia")}, says="worker 7.0.0-1019"),
    Fault("earlyoom", ("F37",), worker={"system": _system(earlyoom=True)}, node="worker"),
    Fault(
        "fabric-carries", ("F46",), heard={"worker": {"small": False, "full": False}}, node="worker", says="no datagram"
    ),
    Fault("fabric-halves", ("F48",), pair=inventory(head=_ONE_HCA), node="head", says="leaves roceP2p1s0f0 out"),
    Fault(
        "fabric-halves",
        ("F48",),
        pair=inventory(head=_ONE_HCA),
        head={"hca_ports": ports("head", state="DOWN")},
        node="head",
        says="roceP2p1s0f0 is DOWN",
    ),
    Fault("pcie-lanes", ("F48",), worker={"hca_ports": ports("worker", link_width=2)}, node="worker", says="2 of 4"),
    Fault("pcie-errors", ("F57",), worker={"hca_ports": ports("worker", pcie_errors=3)}, node="worker"),
    Fault(
        "same-firmware",
        ("F57",),
        worker={"hca_ports": tuple(replace(port, firmware="28.40.1000") for port in ports("worker"))},
    ),
    Fault(
        "ranks-together",
        ("F61",),
        worker={"containers": (container("worker", granted=granted()),)},
        node="head",
        says="without the head's",
    ),
    Fault(
        "ranks-together",
        ("F61",),
        head={"containers": (container("head", granted=granted()),)},
        worker={"containers": (container("worker", granted=granted(), started_at="2026-09-01T11:00:00.0Z"),)},
        node="worker",
        says="after the head's",
    ),
    Fault("state-private", ("F73",), head={"state_mode": 0o755}, node="head"),
    Fault("cache-filesystem", ("F86",), worker={"paths": _cache(filesystem="nfs4")}, node="worker", says="nfs4"),
    Fault(
        "clock-skew", ("F88",), worker={"skew_s": -21_600_000.0}, node="worker", says="behind this machine's, so that"
    ),
    Fault("docker-context", worker={"docker": docker(context="rootless")}, node="worker"),
    Fault(
        "same-driver", worker={"gpus": (replace(node_facts().gpus[0], driver="575.57.08"),)}, says="worker 575.57.08"
    ),
    Fault("same-system", worker={"system": _system(build="7.3.1")}, says="7.3.1"),
)
