"""What the engine needs of its host and of the model's files. Each check ends the engine as the real one ends."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

from . import vllm_host as host
from .vllm_family import Family, known_names
from .vllm_log import Death

OFFLINE = (
    "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing "
    "traffic has been disabled. To enable hf.co look-ups and downloads online, set 'local_files_only' to False."
)
ONLINE = (
    "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and "
    "we cannot find the requested files in the local cache. Please check your connection and try again or make sure "
    "your Internet connection is on."
)


class Model(NamedTuple):
    """The files that are going to be served."""

    folder: Path
    config: dict[str, Any]
    shards: tuple[str, ...]


def unknown_variables(family: Family) -> list[str]:
    """The VLLM_ names in the environment that this runtime does not register, in the environment's order."""
    known = known_names(family)
    return [name for name in os.environ if name.startswith("VLLM_") and name not in known]


def check_variables(arguments: Namespace, family: Family) -> None:
    """Values that end the engine while it reads its environment."""
    retention = os.environ.get("VLLM_PREFIX_CACHE_RETENTION_INTERVAL")
    if family.name == "anemll" and retention is not None:
        try:
            tokens = int(retention)
        except ValueError as error:
            raise Death(f"ValueError: {error}") from None
        if tokens % (arguments.block_size or 16):
            raise Death(f"ValueError: VLLM_PREFIX_CACHE_RETENTION_INTERVAL ({tokens}) must be a multiple of block_size")


def check_gpu() -> None:
    """A container that was started without its GPU."""
    if not os.environ.get("NVIDIA_VISIBLE_DEVICES"):
        raise Death("RuntimeError: Failed to infer device type: no GPU was given to this container")


def check_host() -> None:
    """The address this rank is to bind and the RDMA devices it is to use."""
    address = os.environ.get("VLLM_HOST_IP")
    if not address:
        raise Death("RuntimeError: VLLM_HOST_IP is not set: this rank would advertise 0.0.0.0")
    if not host.is_local(address):
        raise Death(f"OSError: [Errno 99] Cannot assign requested address: VLLM_HOST_IP={address} is not on this host")
    try:
        devices = [entry.name for entry in host.path("/dev/infiniband").iterdir()]
    except OSError:
        devices = []
    if not any(name.startswith("uverbs") for name in devices):
        raise Death("NCCL WARN NET/IB : No device found.", "RuntimeError: NCCL error: internal error")


def check_interfaces(right_gid: object) -> None:
    """What the communication libraries look up once both ranks have met. Stricter than NCCL: one name, no prefix.

    `right_gid` is the index that this host's table calls for, None when nobody said so.
    """
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        interface = os.environ.get(name, "")
        if not interface or host.address_of(interface) is None:
            raise Death(
                f"RuntimeError: [enforce fail at gloo/transport/tcp/device.cc] Unable to find address for: {interface}"
            )
    index = os.environ.get("NCCL_IB_GID_INDEX")
    if index is not None and (not index.isdigit() or (right_gid is not None and int(index) != right_gid)):
        raise Death(
            f"NCCL WARN Call to ibv_modify_qp failed with error Invalid argument (gid index {index!r})",
            "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        )


def find_model(arguments: Namespace) -> Model:
    """Resolve a directory or a hub id as the hub client does it. Raises Death where it would raise."""
    named = arguments.model
    if named.startswith("/"):
        folder = host.path(named)
    else:
        root = host.hub_cache() / f"models--{named.replace('/', '--')}"
        revision = arguments.revision or "main"
        if not (root / "snapshots" / revision).is_dir():
            try:
                revision = (root / "refs" / revision).read_text(encoding="utf-8")  # newer clients strip nothing
            except OSError:
                revision = ""
        folder = root / "snapshots" / revision
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
    except OSError:
        if named.startswith("/"):
            raise Death(f"OSError: {named} does not appear to have a file named config.json.") from None
        raise Death(OFFLINE if os.environ.get("HF_HUB_OFFLINE") == "1" else ONLINE) from None
    shards = tuple(sorted(set(index["weight_map"].values())))
    _check_length(arguments, config)
    return Model(folder, config, shards)


def _check_length(arguments: Namespace, config: dict[str, Any]) -> None:
    most = int(config.get("max_position_embeddings", 1 << 20))
    if arguments.max_model_len in {None, -1}:
        arguments.max_model_len = most
    if arguments.max_model_len > most and os.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        raise Death(
            f"ValueError: User-specified max_model_len ({arguments.max_model_len}) is greater than the derived "
            f"max_model_len (max_position_embeddings={most} in model's config.json)."
        )


def check_shard(folder: Path, name: str) -> None:
    """Read a shard's header and compare it with the file's size."""
    try:
        with (folder / name).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
            size = file.seek(0, os.SEEK_END)
    except OSError:
        raise Death(f"FileNotFoundError: No such file or directory: {folder / name}") from None
    except ValueError:
        raise Death(
            "safetensors_rust.SafetensorError: Error while deserializing header: invalid JSON in header"
        ) from None
    tensors = [value for key, value in header.items() if key != "__metadata__"]
    if size != 8 + length + max(tensor["data_offsets"][1] for tensor in tensors):
        raise Death(
            "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, "
            "file not fully covered"
        )
