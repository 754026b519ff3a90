"""What the probe printed on a node, as facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Interface
from pathlib import PurePosixPath
from typing import Any

from dspark_deploy.facts.containers import parse_container
from dspark_deploy.facts.node import (
    Docker,
    Gid,
    Gpu,
    HcaPort,
    Image,
    Listener,
    Look,
    Memory,
    Netdev,
    NodeFacts,
    Noted,
    PathFact,
    Process,
    System,
)

SCHEMA = 1  # of the probe's document; a change of its shape is a new number, here and in remote/programs/probe.py


def parse_probe(node: str, document: Mapping[str, Any], *, skew_s: float | None = None) -> NodeFacts:
    """Read the document of remote/programs/probe.py, of schema SCHEMA. `node` is "head" or "worker"."""
    memory = document["memory"]
    noted = document["noted"]
    return NodeFacts(
        node=node,
        hostname=document["hostname"],
        machine_id=document["machine_id"],
        boot_id=document["boot_id"],
        user=document["user"],
        home=PurePosixPath(document["home"]),
        architecture=document["architecture"],
        time_s=document["time_s"],
        memory=None if memory is None else Memory(**{**memory, "consumers": _processes(memory["consumers"])}),
        netdevs=tuple(_netdev(each) for each in document["netdevs"]),
        hca_ports=tuple(_hca_port(each) for each in document["hca_ports"]),
        rdma_devices=document["rdma_devices"],
        listeners=tuple(Listener(**each) for each in document["listeners"]),
        docker=Docker(**document["docker"]),
        images=tuple(parse_image(each) for each in document["images"]),
        containers=tuple(parse_container(each) for each in document["containers"]),
        paths=tuple(PathFact(**each) for each in document["paths"]),
        releases=tuple(document["releases"]),
        system=System(**document["system"]),
        gpus=tuple(Gpu(**each) for each in document["gpus"]),
        gpu_processes=_processes(document["gpu_processes"]),
        looks=tuple(parse_look(each) for each in document["looks"]),
        noted=None if noted is None else Noted(noted["at"], dict(noted["values"])),
        marks=tuple(document["marks"]),
        state_mode=document["state_mode"],
        key_at=document.get("key_at"),  # in recordings of earlier versions it is not
        skew_s=skew_s,
        missing=dict(document["missing"]),
    )


def parse_image(found: Mapping[str, Any]) -> Image:
    """Read what the probe tells of one image."""
    return Image(**{**found, "layers": tuple(found["layers"]), "digests": tuple(found["digests"])})


def parse_look(found: Mapping[str, Any]) -> Look:
    """Read what remote/programs/look.py answers for one image."""
    names = {path: tuple(each) for path, each in found["names"].items()}
    return Look(found["image_id"], tuple(found["present"]), tuple(found["absent"]), names)


def _netdev(found: Mapping[str, Any]) -> Netdev:
    addresses = tuple(IPv4Interface(address) for address in found["addresses"])
    return Netdev(**{**found, "addresses": addresses})


def _hca_port(found: Mapping[str, Any]) -> HcaPort:
    return HcaPort(**{**found, "gids": tuple(Gid(**gid) for gid in found["gids"])})


def _processes(found: list[Mapping[str, Any]]) -> tuple[Process, ...]:
    return tuple(Process(**each) for each in found)
