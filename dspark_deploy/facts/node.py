"""What a probe read off one node, at one moment, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface
from pathlib import PurePosixPath
from typing import Literal

DockerAccess = Literal["ok", "permission", "down", "absent", "unknown"]


@dataclass(frozen=True, slots=True)
class System:
    """What runs on the machine beneath everything else. None: it could not be read."""

    os: str | None = None  # `Ubuntu 24.04.3 LTS`
    build: str | None = None  # of DGX OS, where it is one: `7.2.3`
    kernel: str | None = None  # `6.14.0-1013-nvidia`
    python: str | None = None  # of the interpreter that ran the probe
    earlyoom: bool = False  # a process of that name runs: it kills what takes much memory
    linger: bool = True  # the user's services outlive its last session
    memlock_bytes: int | None = None  # this login's limit; None: none


@dataclass(frozen=True, slots=True)
class Process:
    """A process that holds much of something. `name` is its short one: arguments may hold secrets."""

    pid: int
    name: str
    held_bytes: int | None = None
    container: str | None = None  # id of the container that it runs in; None: in none, or it can't be told


@dataclass(frozen=True, slots=True)
class Memory:
    """/proc/meminfo, in bytes. The GPU of a GB10 shares it."""

    total: int
    available: int
    free: int = 0
    cached: int = 0
    swap_total: int = 0
    swap_free: int = 0
    cma_total: int = 0
    cma_free: int = 0
    consumers: tuple[Process, ...] = ()  # the largest, by resident memory


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, as nvidia-smi names it."""

    name: str
    driver: str


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
    firmware: str | None = None
    link_width: int | None = None  # PCIe lanes in use, of `most_lanes`
    most_lanes: int | None = None
    pcie_errors: int | None = None  # fatal and non-fatal ones since the node booted; None: not counted


@dataclass(frozen=True, slots=True)
class Listener:
    """A TCP socket that listens."""

    address: str
    port: int
    owner: str | None = None  # whose socket it is: a user, and the process where this user may see it


@dataclass(frozen=True, slots=True)
class Docker:
    """The node's engine as the SSH user meets it. `detail` is the engine's or the shell's own line."""

    access: DockerAccess
    detail: str = ""
    version: str | None = None
    compose: str | None = None  # None: no compose plugin; `missing` says what was answered instead
    context: str = "default"  # the docker context that this user's commands take
    group_pending: bool = False  # the account is in group docker, and this login began before it was
    root: str | None = None  # where the engine keeps images and containers
    root_free_bytes: int | None = None
    rootless: bool = False
    snap: bool = False
    gpu: bool | None = None  # it can give a container the GPU: an nvidia runtime, hook or CDI file is there


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
class Look:
    """What is in an image, by looking into a container that was made of it and never started."""

    image_id: str
    present: tuple[str, ...]  # of the paths that were asked for
    absent: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]  # path of an envs.py that is present -> the variables that it reads


@dataclass(frozen=True, slots=True)
class Granted:
    """What the engine gave a container when it was made."""

    mounts: tuple[str, ...]  # places in the container
    devices: tuple[str, ...]  # places in the container
    memlock_bytes: int | None  # -1: no limit; None: the engine's own
    gpu: bool


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
    granted: Granted | None = None  # None: it was not asked
    gpu_memory_utilization: float | None = None  # as its command line has it
    finished_at: str | None = None  # RFC 3339, the node's clock; None: it runs, or never ran


@dataclass(frozen=True, slots=True)
class PathFact:
    """A path as the SSH user sees it; links are followed."""

    path: str  # as asked, ~ expanded on the node
    kind: Literal["file", "directory", "other", "absent", "unreadable"]
    writable: bool = False  # an absent path: whether its nearest existing parent is
    free_bytes: int | None = None
    filesystem: str | None = None  # ext4, nfs4, …


@dataclass(frozen=True, slots=True)
class Noted:
    """What a node looked like when the pair last came up well."""

    at: str  # RFC 3339, the controller's clock
    values: Mapping[str, str]  # see facts/fingerprint.py


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
    memory: Memory | None
    netdevs: tuple[Netdev, ...]
    hca_ports: tuple[HcaPort, ...]
    rdma_devices: bool  # /dev/infiniband holds a device
    listeners: tuple[Listener, ...]
    docker: Docker
    images: tuple[Image, ...]
    containers: tuple[Container, ...]
    paths: tuple[PathFact, ...]
    releases: tuple[str, ...]  # ids that this node keeps whole
    system: System = System()
    gpus: tuple[Gpu, ...] = ()
    gpu_processes: tuple[Process, ...] = ()
    looks: tuple[Look, ...] = ()  # of the images above, where the node was asked before
    noted: Noted | None = None
    marks: tuple[str, ...] = ()  # names of what earlier runs left for the next one to heed
    state_mode: int | None = None  # permissions of the pair's folder there; None: it has none yet
    key_at: float | None = None  # when the API key there was written, seconds since the epoch, its clock; None: none
    skew_s: float | None = None  # the node's clock less the controller's
    missing: Mapping[str, str] = field(default_factory=dict)
