"""What a DGX Spark shows of itself, as files below a folder that stands for its `/`.

Names, states and numbers are those of a healthy GB10 machine with one QSFP cable: each of its two ports shows as two
devices on two controllers, and the second port has no cable.
"""

from __future__ import annotations

import json
import secrets
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

DEVICES = {
    "rocep1s0f0": "enp1s0f0np0",
    "rocep1s0f1": "enp1s0f1np1",
    "roceP2p1s0f0": "enP2p1s0f0np0",
    "roceP2p1s0f1": "enP2p1s0f1np1",
}
VERBS = ("uverbs0", "uverbs1", "uverbs2", "uverbs3", "rdma_cm")
GIDS = 8  # rows of a port's table that are written
EMPTY_GID = ":".join(["0000"] * 8)
FABRIC_MTU = 9000
IFF_UP, IFF_UP_RUNNING = "0x1003", "0x11043"

MEMINFO_KB = {
    "MemTotal": 125_513_728,  # 119.7 GiB of 128 GB: the rest is the firmware's
    "MemFree": 118_400_000,
    "MemAvailable": 121_900_000,
    "Buffers": 210_000,
    "Cached": 3_900_000,
    "SwapCached": 0,
    "SwapTotal": 16_777_212,
    "SwapFree": 16_777_212,
    "Shmem": 42_000,
    "CmaTotal": 1_048_576,
    "CmaFree": 1_040_384,
}


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a node is. The two differ in what two real ones differ in."""

    role: str  # head or worker
    number: int  # the last part of its management address; its fabric addresses end in 10 more
    gid_index: int  # of the RoCE v2 row with the fabric's IPv4

    @property
    def hostname(self) -> str:
        return f"rehearsal-{self.role}"

    @property
    def addresses(self) -> dict[str, IPv4Interface]:
        """Interface -> address of what is cabled."""
        return {
            "enP7s7": IPv4Interface(f"10.77.0.{self.number}/24"),
            "enp1s0f0np0": IPv4Interface(f"192.168.177.{10 + self.number}/24"),
            "enP2p1s0f0np0": IPv4Interface(f"192.168.178.{10 + self.number}/24"),
        }

    @property
    def fabric_address(self) -> IPv4Address:
        """Of the interface that NCCL's bootstrap uses."""
        return self.addresses["enp1s0f0np0"].ip


HEAD = Identity("head", 1, gid_index=3)
WORKER = Identity("worker", 2, gid_index=5)


def write_machine(root: Path, identity: Identity, *, rdma: bool = True, listening: Sequence[int] = ()) -> None:
    """Write all that a probe reads below /etc, /proc, /sys and /dev. `listening` are TCP ports that are taken."""
    names = {name: address.ip for name, address in identity.addresses.items()}
    _write(
        root,
        {
            "etc/machine-id": secrets.token_hex(16),
            "etc/hostname": identity.hostname,
            "etc/os-release": 'NAME="Ubuntu"\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.3 LTS"',
            "etc/dgx-release": 'DGX_NAME="DGX Spark"\nDGX_SWBUILD_VERSION="7.2.3"',
            "proc/sys/kernel/hostname": identity.hostname,
            "proc/sys/kernel/random/boot_id": str(uuid.uuid4()),
            "proc/meminfo": meminfo({}).rstrip("\n"),
            "proc/self/mounts": "/dev/nvme0n1p2 / ext4 rw,relatime 0 0",
            "proc/net/tcp": _listeners(listening),
        },
    )
    for name in ("enP7s7", *DEVICES.values()):
        _write(root / "sys/class/net" / name, _netdev(name, identity, connected=name in names))
    if rdma:
        write_infiniband(root / "sys/class/infiniband", names, identity.gid_index)
        _write(root / "dev/infiniband", dict.fromkeys(VERBS, ""))


def ip_addresses(identity: Identity) -> str:
    """What `ip -j -4 addr` prints."""
    return json.dumps(
        [
            {
                "ifname": name,
                "addr_info": [{"family": "inet", "local": str(each.ip), "prefixlen": each.network.prefixlen}],
            }
            for name, each in identity.addresses.items()
        ]
    )


def _netdev(name: str, identity: Identity, *, connected: bool) -> dict[str, str]:
    number = (*DEVICES.values(), "enP7s7").index(name)
    fabric = name != "enP7s7"
    return {
        "flags": IFF_UP_RUNNING if connected else IFF_UP,
        "carrier": "1" if connected else "0",
        "mtu": str(FABRIC_MTU if fabric else 1500),
        "speed": ("200000" if fabric else "10000") if connected else "-1",
        "address": f"4c:bb:47:48:{identity.number:02x}:{number:02x}",
    }


def _listeners(ports: Sequence[int]) -> str:
    """/proc/net/tcp: addresses are the machine's words in its own order."""
    lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
    lines += [
        f"   {number}: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 {number}"
        for number, port in enumerate(ports)
    ]
    return "\n".join(lines)


def write_infiniband(folder: Path, addresses: Mapping[str, IPv4Address], gid_index: int) -> None:
    """Write the content of /sys/class/infiniband, in place: the folder may be mounted on a running node.

    `addresses`: interface -> the IPv4 of its RoCE v2 row, which stands at `gid_index`. A device whose interface has
    none is a port without a cable.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, (device, interface) in enumerate(DEVICES.items()):
        root = folder / device
        shutil.rmtree(root, ignore_errors=True)
        (root / "device" / "net" / interface).mkdir(parents=True)
        address = addresses.get(interface)
        _write(
            root,
            {
                "node_type": "1: CA",
                "fw_ver": "28.45.4028",
                "hca_type": "MT4129",
                "board_id": "NVD0000000087",
                "node_guid": f"4cbb:4703:0048:65{number:02x}",
                "device/current_link_width": "4",
                "device/max_link_width": "4",
                "device/current_link_speed": "32.0 GT/s PCIe",
                "device/vendor": "0x15b3",
            },
        )
        _write(root / "ports" / "1", {"link_layer": "Ethernet", **_port_state(active=address is not None)})
        _write_gids(root / "ports" / "1", interface, _gid_rows(number, address, gid_index))


def set_port_state(folder: Path, interface: str, *, active: bool) -> None:
    """Turn the RDMA port of an interface ACTIVE or DOWN."""
    device = next(device for device, name in DEVICES.items() if name == interface)
    _write(folder / device / "ports" / "1", _port_state(active=active))


def _port_state(*, active: bool) -> dict[str, str]:
    return {
        "rate": "200 Gb/sec (4X HDR)" if active else "40 Gb/sec (4X QDR)",
        "state": "4: ACTIVE" if active else "1: DOWN",
        "phys_state": "5: LinkUp" if active else "3: Disabled",
    }


@dataclass(frozen=True, slots=True)
class _Gid:
    value: str
    kind: str


def _gid_rows(number: int, address: IPv4Address | None, gid_index: int) -> dict[int, _Gid]:
    """Rows come in pairs, RoCE v1 before v2: link-local first, the IPv4 pair so that v2 stands at `gid_index`."""
    link_local = f"fe80:0000:0000:0000:4ebb:47ff:fe48:65{number:02x}"
    rows = {0: _Gid(link_local, "IB/RoCE v1"), 1: _Gid(link_local, "RoCE v2")}
    if address is None:
        return rows
    for index in range(2, gid_index - 1):
        unique = f"fd00:0077:0000:0000:0000:0000:0000:{number:02x}{index // 2:02x}"
        rows[index] = _Gid(unique, "RoCE v2" if index % 2 else "IB/RoCE v1")
    mapped = f"0000:0000:0000:0000:0000:ffff:{int(address) >> 16:04x}:{int(address) & 0xFFFF:04x}"
    rows[gid_index - 1] = _Gid(mapped, "IB/RoCE v1")
    rows[gid_index] = _Gid(mapped, "RoCE v2")
    return rows


def _write_gids(port: Path, interface: str, rows: dict[int, _Gid]) -> None:
    for index in range(GIDS):
        row = rows.get(index)
        _write(port, {f"gids/{index}": row.value if row else EMPTY_GID})
        if row:  # reading the other two of an empty row fails on a real port
            _write(port, {f"gid_attrs/types/{index}": row.kind, f"gid_attrs/ndevs/{index}": interface})


def meminfo(changes: Mapping[str, int]) -> str:
    """The text of /proc/meminfo, in kB, with some lines changed or added."""
    return "".join(f"{name + ':':<16}{value:>9} kB\n" for name, value in {**MEMINFO_KB, **changes}.items())


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
