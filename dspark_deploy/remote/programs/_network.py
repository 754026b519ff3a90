"""Interfaces, RDMA ports and listening sockets, as /sys and /proc tell them."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import socket
import struct

from dspark_deploy.remote.programs._frame import find_on_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

IFF_UP = 1
SIOCGIFADDR, SIOCGIFNETMASK = 0x8915, 0x891B
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
LISTENING = "0A"


def read_text(path: str) -> str | None:
    """A small file's content without the line end; None where it can't be read, as /sys has it for `not now`."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def read_netdevs(sys_folder: str, addresses: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Every network interface, in order of their names."""
    folder = f"{sys_folder}/class/net"
    # bonding_masters is a file there.
    names = sorted(name for name in os.listdir(folder) if os.path.isdir(f"{folder}/{name}"))
    return [_netdev(f"{folder}/{name}", name, addresses.get(name, [])) for name in names]


def _netdev(folder: str, name: str, addresses: list[str]) -> dict[str, Any]:
    up = int(read_text(f"{folder}/flags") or "0", 16) & IFF_UP != 0
    speed = _number(read_text(f"{folder}/speed"))
    return {
        "name": name,
        "up": up and read_text(f"{folder}/carrier") == "1",
        "mtu": _number(read_text(f"{folder}/mtu")) or 0,
        "mac": read_text(f"{folder}/address") or None,
        "speed_mbps": speed if speed is not None and speed > 0 else None,
        "addresses": addresses,
    }


def read_addresses() -> dict[str, list[str]]:
    """Interface -> its IPv4 addresses as `10.0.0.1/24`. Without `ip` only the first of each is known."""
    ip = find_on_path("ip")
    printed = _printed_by(ip, ["ip", "-j", "-4", "addr"]) if ip else ""
    try:
        interfaces = json.loads(printed)
    except ValueError:  # busybox's ip has no -j
        return _first_addresses()
    return {
        interface["ifname"]: [f"{info['local']}/{info['prefixlen']}" for info in interface["addr_info"]]
        for interface in interfaces
        if "ifname" in interface
    }


def _printed_by(path: str, argv: list[str]) -> str:
    reader, writer = os.pipe()
    wiring = [(os.POSIX_SPAWN_DUP2, writer, 1)]
    child = os.posix_spawn(path, argv, os.environ, file_actions=wiring)
    os.close(writer)
    with os.fdopen(reader, "rb") as output:
        printed = output.read().decode(errors="replace")
    os.waitpid(child, 0)
    return printed


def _first_addresses() -> dict[str, list[str]]:
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                address = fcntl.ioctl(probe, SIOCGIFADDR, request)[20:24]
                mask = fcntl.ioctl(probe, SIOCGIFNETMASK, request)[20:24]
            except OSError:  # it has none
                continue
            found[name] = [f"{socket.inet_ntoa(address)}/{int.from_bytes(mask, 'big').bit_count()}"]
    return found


def read_hca_ports(sys_folder: str) -> list[dict[str, Any]]:
    """Every port of every RDMA device. A node without any is an empty list."""
    folder = f"{sys_folder}/class/infiniband"
    if not os.path.isdir(folder):
        return []
    return [_hca_port(f"{folder}/{device}", device, port) for device, port in _ports(folder)]


def _ports(folder: str) -> Iterator[tuple[str, int]]:
    for device in sorted(os.listdir(folder)):
        for port in sorted(os.listdir(f"{folder}/{device}/ports"), key=int):
            yield device, int(port)


def _hca_port(device_folder: str, device: str, port: int) -> dict[str, Any]:
    folder = f"{device_folder}/ports/{port}"
    state = read_text(f"{folder}/state")  # `4: ACTIVE`
    gids = list(_gids(folder))
    netdevs = {gid["netdev"] for gid in gids if gid["netdev"]}
    if os.path.isdir(f"{device_folder}/device/net"):  # a virtual device hangs on no bus
        netdevs |= set(os.listdir(f"{device_folder}/device/net"))
    return {
        "device": device,
        "port": port,
        "state": state.partition(": ")[2] or state if state else None,
        "link_layer": read_text(f"{folder}/link_layer"),
        "netdev": min(netdevs) if netdevs else None,
        "gids": gids,
        "firmware": read_text(f"{device_folder}/fw_ver") or None,
        "link_width": _number(read_text(f"{device_folder}/device/current_link_width")),
        "most_lanes": _number(read_text(f"{device_folder}/device/max_link_width")),
        "pcie_errors": _pcie_errors(f"{device_folder}/device"),
    }


def _pcie_errors(folder: str) -> int | None:
    """Fatal and non-fatal errors since the node booted, which the kernel counts for each device (AER)."""
    tables = [read_text(f"{folder}/aer_dev_{kind}") for kind in ("fatal", "nonfatal")]
    rows = [line.split() for table in tables if table for line in table.splitlines()]
    totals = [int(count) for name, count in rows if name.startswith("TOTAL_ERR")]
    return sum(totals) if totals else None


def _gids(folder: str) -> Iterator[dict[str, Any]]:
    """The rows that are not all zeros. A table has 256 rows on mlx5, so the attributes of empty ones are not read."""
    for index in sorted(int(name) for name in os.listdir(f"{folder}/gids")):
        gid = read_text(f"{folder}/gids/{index}")
        if gid and gid != NO_GID:
            yield {
                "index": index,
                "gid": gid,
                "type": read_text(f"{folder}/gid_attrs/types/{index}"),
                "netdev": read_text(f"{folder}/gid_attrs/ndevs/{index}"),
            }


def read_listeners(proc_folder: str, ports: list[int]) -> list[dict[str, Any]]:
    """Every TCP socket that listens, IPv4 and IPv6. Whose it is, is told for those on `ports` only: it takes longer."""
    found = []
    for name in ("tcp", "tcp6"):
        table = read_text(f"{proc_folder}/net/{name}") or ""  # no tcp6: IPv6 is off
        for row in table.splitlines()[1:]:
            fields = row.split()
            if fields[3] == LISTENING:
                address, _, digits = fields[1].partition(":")
                port = int(digits, 16)
                owner = _owner(proc_folder, fields) if port in ports else None
                found.append({"address": _address(address), "port": port, "owner": owner})
    return found


def _owner(proc_folder: str, fields: list[str]) -> str | None:
    """The user of a socket, and the process where this user may look into it."""
    if len(fields) < 10:  # noqa: PLR2004  sl, two addresses, state, queues, timer, retransmits, uid, timeout, inode
        return None
    uid, inode = int(fields[7]), fields[9]
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = f"uid {uid}"
    for pid in os.listdir(proc_folder):
        if pid.isdigit() and _holds(f"{proc_folder}/{pid}/fd", inode):
            return f"{read_text(f'{proc_folder}/{pid}/comm')}, pid {pid} of {user}"
    return f"a process of {user}"


def _holds(folder: str, inode: str) -> bool:
    try:
        return any(os.readlink(f"{folder}/{fd}") == f"socket:[{inode}]" for fd in os.listdir(folder))
    except OSError:  # another user's, or it has ended
        return False


def _address(digits: str) -> str:
    """The kernel prints 32-bit words in the machine's own order; both families of machines are little-endian."""
    words = struct.unpack(f">{len(digits) // 8}I", bytes.fromhex(digits))
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, struct.pack(f"<{len(words)}I", *words))


def _number(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
