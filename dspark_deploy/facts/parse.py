"""What the probe printed on a node, as facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Interface
from pathlib import PurePosixPath
from typing import Any

from dspark_deploy.facts.containers import parse_container
from dspark_deploy.facts.node import Docker, Gid, HcaPort, Image, Listener, Netdev, NodeFacts, PathFact


def parse_probe(node: str, document: Mapping[str, Any]) -> NodeFacts:
    """Read the document of remote/programs/probe.py. `node` is "head" or "worker"."""
    return NodeFacts(
        node=node,
        hostname=document["hostname"],
        machine_id=document["machine_id"],
        boot_id=document["boot_id"],
        user=document["user"],
        home=PurePosixPath(document["home"]),
        architecture=document["architecture"],
        time_s=document["time_s"],
        memory_total_bytes=document["memory_total_bytes"],
        memory_available_bytes=document["memory_available_bytes"],
        netdevs=tuple(_netdev(each) for each in document["netdevs"]),
        hca_ports=tuple(_hca_port(each) for each in document["hca_ports"]),
        rdma_devices=document["rdma_devices"],
        listeners=tuple(Listener(**each) for each in document["listeners"]),
        docker=Docker(**document["docker"]),
        images=tuple(_image(each) for each in document["images"]),
        containers=tuple(parse_container(each) for each in document["containers"]),
        paths=tuple(PathFact(**each) for each in document["paths"]),
        releases=tuple(document["releases"]),
        missing=dict(document["missing"]),
    )


def _netdev(found: Mapping[str, Any]) -> Netdev:
    addresses = tuple(IPv4Interface(address) for address in found["addresses"])
    return Netdev(**{**found, "addresses": addresses})


def _hca_port(found: Mapping[str, Any]) -> HcaPort:
    return HcaPort(**{**found, "gids": tuple(Gid(**gid) for gid in found["gids"])})


def _image(found: Mapping[str, Any]) -> Image:
    return Image(**{**found, "layers": tuple(found["layers"]), "digests": tuple(found["digests"])})
