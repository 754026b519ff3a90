"""What the stand-in asks of its host: paths, interfaces, addresses. The only place that knows of a rehearsal."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

_SIOCGIFADDR = 0x8915
SECTIONS = ("0", "1", "anemll", "stage-c")  # of the switches' file: what holds for one rank, for one image


@lru_cache(maxsize=1)
def _address_map() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(os.environ.get("DSPARK_STANDIN_ADDRESS_MAP") or "{}")
    return loaded


def endpoint(address: str, port: int) -> tuple[str, int]:
    """What to bind or dial for an address and port. Every socket of the stand-in gets its endpoint here."""
    mapped = _address_map().get("endpoints", {}).get(f"{address}:{port}")
    if mapped is None:
        return address, port
    host, _, number = mapped.rpartition(":")
    return host, int(number)


def path(text: str) -> Path:
    """A path of this host; below DSPARK_STANDIN_ROOT where that is set and the path does not lie there already."""
    root = os.environ.get("DSPARK_STANDIN_ROOT", "")
    return Path(root + text) if text.startswith("/") and not text.startswith(f"{root}/") else Path(text)


def address_of(interface: str) -> str | None:
    """The IPv4 of an interface; None when there is no such interface or it has none."""
    local = _address_map().get("local")
    if local is not None:
        found = local.get(interface)
        return None if found is None else str(found)
    import fcntl  # noqa: PLC0415  not there on every system that a rehearsal runs on

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def is_local(address: str) -> bool:
    """Does this host have this IPv4 address?"""
    local = _address_map().get("local")
    if local is not None:
        return address in local.values()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def hf_home() -> Path:
    """The Hugging Face home that the environment names, or the library's own default."""
    return path(os.environ.get("HF_HOME") or str(Path.home() / ".cache/huggingface"))


def hub_cache() -> Path:
    """The hub's cache: HF_HUB_CACHE, else the folder `hub` of the home."""
    named = os.environ.get("HF_HUB_CACHE")
    return path(named) if named else hf_home() / "hub"


def switches(rank: int, family: str) -> dict[str, Any]:
    """The fault switches of this rank and family, read now. A file that is missing or half written has none."""
    try:
        every = json.loads((hf_home() / ".stub.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(every, dict):
        return {}
    sections = {name: every.pop(name, {}) for name in SECTIONS}
    return {**every, **sections[family], **sections[str(rank)]}


def end_with_parent() -> None:
    """End this process when the pipe from its parent closes, if there is one."""
    descriptor = os.environ.get("DSPARK_STANDIN_PARENT_FD")
    if not descriptor:
        return

    def wait() -> None:
        while os.read(int(descriptor), 4096):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
