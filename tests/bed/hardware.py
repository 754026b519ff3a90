"""What a DGX Spark shows of its hardware, as files: RDMA ports, memory, and the programs that read them out.

Names, states and numbers are those of a GB10 machine with one QSFP cable: each of its two ports shows as two devices on
two controllers. The folder lies outside of the node, so a test changes it while the node runs.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

DEVICES = {
    "rocep1s0f0": "enp1s0f0np0",
    "rocep1s0f1": "enp1s0f1np1",
    "roceP2p1s0f0": "enP2p1s0f0np0",
    "roceP2p1s0f1": "enP2p1s0f1np1",
}
GIDS = 8
EMPTY_GID = ":".join(["0000"] * 8)

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


def write_infiniband(folder: Path, addresses: dict[str, IPv4Address], gid_index: int) -> None:
    """Write the content of /sys/class/infiniband, in place: the folder may be mounted on a running node.

    `addresses`: interface -> the IPv4 of its RoCE v2 row, which stands at `gid_index`. A device whose interface has
    none is a port without a cable.
    """
    folder.mkdir(exist_ok=True)
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
        _write(
            root / "ports" / "1",
            {
                "link_layer": "Ethernet",
                "rate": "200 Gb/sec (4X HDR)" if address else "40 Gb/sec (4X QDR)",
                "state": "4: ACTIVE" if address else "1: DOWN",
                "phys_state": "5: LinkUp" if address else "3: Disabled",
            },
        )
        _write_gids(root / "ports" / "1", interface, _gid_rows(number, address, gid_index))


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


def set_port_state(folder: Path, interface: str, *, active: bool) -> None:
    """Turn the RDMA port of an interface ACTIVE or DOWN."""
    device = next(device for device, name in DEVICES.items() if name == interface)
    _write(
        folder / device / "ports" / "1",
        {
            "state": "4: ACTIVE" if active else "1: DOWN",
            "phys_state": "5: LinkUp" if active else "3: Disabled",
        },
    )


def meminfo(changes: dict[str, int]) -> str:
    """The text of /proc/meminfo, in kB, with some lines changed or added."""
    return "".join(f"{name + ':':<16}{value:>9} kB\n" for name, value in {**MEMINFO_KB, **changes}.items())


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


IBDEV2NETDEV = """#!/bin/sh
for device in /sys/class/infiniband/*; do
    state=Down
    grep -q ACTIVE "$device/ports/1/state" && state=Up
    echo "${device##*/} port 1 ==> $(ls "$device/device/net") ($state)"
done
"""

# Unified memory: GB10's own tool has no answer to any question about the GPU's memory.
NVIDIA_SMI = """#!/bin/sh
value() {
    case $1 in
        index) echo 0 ;;
        name|gpu_name) echo 'NVIDIA GB10' ;;
        uuid|gpu_uuid) echo 'GPU-6f1c2f0e-9b1e-4d0e-8a77-3c5d9e00a1b0' ;;
        driver_version) echo 580.95.05 ;;
        compute_cap) echo 12.1 ;;
        pci.bus_id) echo '0000000F:01:00.0' ;;
        temperature.gpu) echo 41 ;;
        power.draw) echo '10.63 W' ;;
        utilization.gpu) echo '0 %' ;;
        pstate) echo P8 ;;
        *) echo '[N/A]' ;;
    esac
}
query= header=yes units=yes
for word in "$@"; do
    case $word in
        -L) echo 'GPU 0: NVIDIA GB10 (UUID: GPU-6f1c2f0e-9b1e-4d0e-8a77-3c5d9e00a1b0)'; exit ;;
        --query-gpu=*) query=${word#*=} ;;
        --query-compute-apps=*) [ -f /run/bed-gpu-apps ] && cat /run/bed-gpu-apps; exit 0 ;;
        --format=*) case $word in *noheader*) header= ;; esac; case $word in *nounits*) units= ;; esac ;;
    esac
done
if [ -z "$query" ]; then
    echo '| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |'
    echo '|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |'
    exit
fi
[ -n "$header" ] && echo "$query" | sed 's/,/, /g'
line= rest=$query,
while [ -n "$rest" ]; do
    field=${rest%%,*}; rest=${rest#*,}
    answer=$(value "$field")
    [ -n "$units" ] || answer=${answer% [W%]}
    line="$line, $answer"
done
echo "${line#, }"
"""

# dockerd offers its nvidia driver when it finds this program; an exit code of 0 is a GPU that could be attached.
NVIDIA_HOOK = """#!/bin/sh
if [ -f /run/bed-gpu-error ]; then
    cat /run/bed-gpu-error >&2
    exit 1
fi
"""

# A machine without CAP_SYS_RESOURCE can't grant `memlock: -1`: lower the wish to what there is, before runc sees it.
RUNC = """#!/bin/sh
most=$(ulimit -H -l)
if [ "$most" != unlimited ]; then
    most=$((most * 1024)) verb= bundle= process= last=
    for word in "$@"; do
        case $word in create|run|exec) verb=${verb:-$word} ;; esac
        case $last in --bundle|-b) bundle=$word ;; --process|-p) process=$word ;; esac
        case $word in --bundle=*) bundle=${word#*=} ;; --process=*) process=${word#*=} ;; esac
        last=$word
    done
    file=$process
    [ "$verb" = exec ] || file=$bundle/config.json
    if [ -n "$verb" ] && [ -f "$file" ]; then
        wish='"RLIMIT_MEMLOCK","hard":[0-9]*,"soft":[0-9]*'
        sed -i "s/$wish/\\"RLIMIT_MEMLOCK\\",\\"hard\\":$most,\\"soft\\":$most/" "$file"
    fi
fi
exec @RUNC@ "$@"
"""
