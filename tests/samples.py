"""Small, whole values for tests: facts of a healthy pair, containers, a deployment's parts."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import PurePosixPath
from typing import Any

from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container, Docker, Gid, HcaPort, Image, Netdev, NodeFacts, PathFact

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


def node_facts(node: str = "head", **changes: Any) -> NodeFacts:
    """A healthy DGX Spark that runs nothing of the pair."""
    number = 11 if node == "head" else 12
    index = 3 if node == "head" else 5
    netdevs = tuple(
        Netdev(name, up=True, mtu=9000, addresses=(IPv4Interface(f"192.168.{network}.{number}/24"),))
        for name, network in (("enp1s0f0np0", 177), ("enP2p1s0f0np0", 178))
    )
    ports = tuple(
        HcaPort(device, 1, "ACTIVE", "Ethernet", netdev, (_gid(index, f"192.168.{network}.{number}", netdev),))
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
        memory_total_bytes=119 * 2**30,
        memory_available_bytes=112 * 2**30,
        netdevs=netdevs,
        hca_ports=ports,
        rdma_devices=True,
        listeners=(),
        docker=Docker("ok", version="28.2.2", compose="2.36.0"),
        images=(image(),),
        containers=(),
        paths=(PathFact(f"{home}/.cache/huggingface", "directory", writable=True, free_bytes=2**40),),
        releases=(),
    )
    return replace(known, **changes)


def pair_facts(head: dict[str, Any] | None = None, worker: dict[str, Any] | None = None) -> dict[str, NodeFacts]:
    """Both nodes, each with its own changes."""
    return {"head": node_facts("head", **(head or {})), "worker": node_facts("worker", **(worker or {}))}


def _gid(index: int, address: str, netdev: str) -> Gid:
    octets = [int(part) for part in address.split(".")]
    tail = "{:02x}{:02x}:{:02x}{:02x}".format(*octets)
    return Gid(index, f"0000:0000:0000:0000:0000:ffff:{tail}", "RoCE v2", netdev)
