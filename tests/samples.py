"""Small, whole values for tests: facts of a healthy pair, containers, a deployment's parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import PurePosixPath
from typing import Any

from dspark_deploy.facts import labels
from dspark_deploy.facts.node import (
    Container,
    Docker,
    Gid,
    Gpu,
    HcaPort,
    Image,
    Memory,
    Netdev,
    NodeFacts,
    PathFact,
    System,
)

IMAGE = "ghcr.io/anemll/dspark-vllm-gx10:0.1.1"
IMAGE_ID = "sha256:" + "1" * 64
PAIR = "spark-pair"
HOMES = {"head": "/home/nvidia", "worker": "/home/ubuntu"}


def image(**changes: Any) -> Image:
    """The Anemll image as one node holds it."""
    known = Image(reference=IMAGE, id=IMAGE_ID, layers=("sha256:aa", "sha256:bb"), config="cafe", architecture="arm64")
    return replace(known, **changes)


def container(node: str = "head", release: str = "0123456789ab", **changes: Any) -> Container:
    """A rank's container as it runs."""
    marks = {
        labels.PAIR: PAIR,
        labels.NODE: node,
        labels.RANK: "0" if node == "head" else "1",
        labels.RELEASE: release,
        labels.PROFILE: "agent-1m",
        labels.FAMILY: "anemll",
    }
    known = Container(
        id=f"{node}-{release}",
        name=f"{PAIR}-vllm-1",
        state="running",
        image_id=IMAGE_ID,
        labels=marks,
        started_at="2026-09-01T10:00:00.000000000Z",
    )
    return replace(known, **changes)


def memory(**changes: Any) -> Memory:
    """Of an idle Spark. Sizes in bytes."""
    known = Memory(
        total=119 * 2**30,
        available=112 * 2**30,
        free=108 * 2**30,
        cached=4 * 2**30,
        swap_total=16 * 2**30,
        swap_free=16 * 2**30,
        cma_total=2**30,
        cma_free=2**30 - 2**23,
    )
    return replace(known, **changes)


def docker(**changes: Any) -> Docker:
    """An engine that the user may use."""
    known = Docker("ok", version="28.2.2", compose="2.36.0", root="/var/lib/docker", root_free_bytes=2**40, gpu=True)
    return replace(known, **changes)


def node_facts(node: str = "head", **changes: Any) -> NodeFacts:
    """A healthy DGX Spark that runs nothing of the pair."""
    number = 11 if node == "head" else 12
    index = 3 if node == "head" else 5
    netdevs = tuple(
        Netdev(name, up=True, mtu=9000, addresses=(IPv4Interface(f"192.168.{network}.{number}/24"),))
        for name, network in (("enp1s0f0np0", 177), ("enP2p1s0f0np0", 178))
    )
    ports = tuple(
        HcaPort(
            device,
            1,
            "ACTIVE",
            "Ethernet",
            netdev,
            (_gid(index, f"192.168.{network}.{number}", netdev),),
            firmware="28.45.4028",
            link_width=4,
            most_lanes=4,
            pcie_errors=0,
        )
        for device, netdev, network in (("rocep1s0f0", "enp1s0f0np0", 177), ("roceP2p1s0f0", "enP2p1s0f0np0", 178))
    )
    home = HOMES[node]
    known = NodeFacts(
        node=node,
        hostname=f"spark-{node}",
        machine_id=node * 4,
        boot_id=f"boot-{node}",
        user=home.rsplit("/", 1)[1],
        home=PurePosixPath(home),
        architecture="aarch64",
        time_s=1_788_000_000.0,
        memory=memory(),
        netdevs=netdevs,
        hca_ports=ports,
        rdma_devices=True,
        listeners=(),
        docker=docker(),
        images=(image(),),
        containers=(),
        paths=(
            PathFact(f"{home}/.cache/huggingface", "directory", writable=True, free_bytes=2**40, filesystem="ext4"),
        ),
        releases=(),
        system=System("Ubuntu 24.04.3 LTS", "7.2.3", "6.14.0-1013-nvidia", "3.12.3", linger=False),
        gpus=(Gpu("NVIDIA GB10", "580.95.05"),),
        skew_s=0.0,
    )
    return replace(known, **changes)


def pair_facts(head: dict[str, Any] | None = None, worker: dict[str, Any] | None = None) -> dict[str, NodeFacts]:
    """Both nodes, each with its own changes."""
    return {"head": node_facts("head", **(head or {})), "worker": node_facts("worker", **(worker or {}))}


def snapshot_document(request: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """What `verify_cache` answers on a node that has the asked model complete, in two shards; or with changes."""
    hub, revision = request["hub_cache"] or f"{request['hf_home']}/hub", request["revision"] or "9" * 40
    is_plain = request["directory"] is not None
    root = f"{hub}/models--{(request['model'] or '').replace('/', '--')}"
    folder = f"{request['hf_home']}/{request['directory']}" if is_plain else f"{root}/snapshots/{revision}"
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    names = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json", *shards]
    names += ["encoding/encoding_dsv4.py"] if request["encoder"] else []
    return {
        "user": request["hf_home"].split("/")[2] if request["hf_home"].startswith("/home/") else "spark",
        "hub": hub,
        "root": folder if is_plain else root,
        "folder": folder,
        "revision": None if is_plain else revision,
        "revisions": [] if is_plain else [revision],
        "ref": None if is_plain else revision,
        "files": [snapshot_file(f"{folder}/", name) for name in names],
        "shards": shards,
        "total_bytes": 2000,
        "architectures": ["DeepseekV4ForCausalLM"],
        "draft_block_size": 5,
        "leaves": None,
        "unreadable": "",
        "unfinished": None,
        "owned_by_others": None,
        "elsewhere": [],
        "free_bytes": 2**40,
        "hashed": None,
        "not_kept": "",
        **changes,
    }


def snapshot_file(folder: str, name: str, **changes: Any) -> dict[str, Any]:
    """A whole file of a snapshot, a real one."""
    known = {
        "name": name,
        "path": folder + name,
        "size": 1008,
        "blob": None,
        "required": True,
        "problem": None,
        "detail": "",
        "doubt": "",
        "digests": {"sha256": name},
        "hashed": False,
    }
    return {**known, **changes}


def _gid(index: int, address: str, netdev: str) -> Gid:
    octets = [int(part) for part in address.split(".")]
    tail = "{:02x}{:02x}:{:02x}{:02x}".format(*octets)
    return Gid(index, f"0000:0000:0000:0000:0000:ffff:{tail}", "RoCE v2", netdev)


def cache_place(known: NodeFacts, **changes: Any) -> dict[str, Any]:
    """What `places` tells of the usual cache of a node that holds the default model."""
    hf_home = f"{known.home}/.cache/huggingface"
    return {
        "setting": "the usual place",
        "hf_home": hf_home,
        "hub": f"{hf_home}/hub",
        "there": True,
        "writable": True,
        "free_bytes": 2**40,
        "models": ["deepseek-ai/DeepSeek-V4-Flash-0731"],
        "directories": [],
        **changes,
    }
