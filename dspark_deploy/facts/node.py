"""What a probe read off one node, at one moment, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface
from pathlib import PurePosixPath
from typing import Literal

DockerAccess = Literal["ok", "permission", "down", "absent", "unknown"]


@dataclass(frozen=True, slots=True)
class Netdev:
    """One network interface."""

    name: str
    up: bool  # administratively up and with carrier
    mtu: int
    addresses: tuple[IPv4Interface, ...]
    mac: str | None = None
    speed_mbps: int | None = None


@dataclass(frozen=True, slots=True)
class Gid:
    """One row of an HCA port's GID table that is not all zeros."""

    index: int
    gid: str  # eight groups of four hex digits
    type: str | None  # `RoCE v2`, `IB/RoCE v1`
    netdev: str | None


@dataclass(frozen=True, slots=True)
class HcaPort:
    """One port of an RDMA device."""

    device: str
    port: int
    state: str | None  # `ACTIVE`, `DOWN`; None: unreadable
    link_layer: str | None
    netdev: str | None
    gids: tuple[Gid, ...]


@dataclass(frozen=True, slots=True)
class Listener:
    """A TCP socket that listens."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Docker:
    """The node's engine as the SSH user meets it. `detail` is the engine's or the shell's own line."""

    access: DockerAccess
    detail: str = ""
    version: str | None = None
    compose: str | None = None  # None: no compose plugin; `missing` says what was answered instead
    context: str = "default"  # the docker context that this user's commands take
    group_pending: bool = False  # the account is in group docker, and this session began before it was


@dataclass(frozen=True, slots=True)
class Image:
    """An image under the reference it was asked by. `layers` are the ordered diff ids."""

    reference: str
    id: str
    layers: tuple[str, ...]
    config: str  # hash over what the image runs with: environment, entrypoint, command, working directory, user
    architecture: str
    digests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Container:
    """A container of the pair, or one that stands in its way."""

    id: str
    name: str
    state: str  # docker's own: created, running, restarting, exited, dead, …
    image_id: str
    labels: Mapping[str, str]
    started_at: str | None = None  # RFC 3339, the node's clock
    exit_code: int | None = None
    restarts: int = 0
    oom_killed: bool = False
    stop_timeout_s: int | None = None


@dataclass(frozen=True, slots=True)
class PathFact:
    """A path as the SSH user sees it; links are followed."""

    path: str  # as asked, ~ expanded on the node
    kind: Literal["file", "directory", "other", "absent", "unreadable"]
    writable: bool = False  # an absent path: whether its nearest existing parent is
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node. A source that could not be read is None or empty, and `missing` says why."""

    node: str  # "head" or "worker"
    hostname: str
    machine_id: str | None
    boot_id: str | None
    user: str
    home: PurePosixPath
    architecture: str  # as `uname -m` says it
    time_s: float  # the node's clock, seconds since the epoch
    memory_total_bytes: int | None
    memory_available_bytes: int | None
    netdevs: tuple[Netdev, ...]
    hca_ports: tuple[HcaPort, ...]
    rdma_devices: bool  # /dev/infiniband holds a device
    listeners: tuple[Listener, ...]
    docker: Docker
    images: tuple[Image, ...]
    containers: tuple[Container, ...]
    paths: tuple[PathFact, ...]
    releases: tuple[str, ...]  # ids that this node keeps whole
    missing: Mapping[str, str] = field(default_factory=dict)
