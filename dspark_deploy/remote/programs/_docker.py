"""What the node's Docker engine tells of itself, its images and the pair's containers."""

from __future__ import annotations

import hashlib
import json
import os

from dspark_deploy.remote.programs._engine import NOT_FOUND, quoted
from dspark_deploy.remote.programs._frame import find_on_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dspark_deploy.remote.programs._engine import Engine

BAD_REQUEST = 400
UTILIZATION_FLAG = "--gpu-memory-utilization"
# Any of them is a way in which the engine can be given the GPU: the runtime that the toolkit registers, the hook that
# `--gpus` runs (moby, daemon/nvidia_linux.go), a CDI file.
HOOKS = ("nvidia-container-runtime-hook", "nvidia-container-runtime")
CDI = ("etc/cdi", "run/cdi", "var/run/cdi")


def read_info(engine: Engine, root: str) -> dict[str, Any]:
    """How the engine is set up; empty where it does not say."""
    info = engine.get("/info") or {}
    folder = info.get("DockerRootDir")
    return {
        "root": folder,
        "root_free_bytes": _free(folder),
        "rootless": any("rootless" in each for each in info.get("SecurityOptions") or []),
        "snap": str(folder).startswith("/var/snap/"),
        "gpu": _gives_gpu(info, root) if info else None,
    }


def _gives_gpu(info: Mapping[str, Any], root: str) -> bool:
    if "nvidia" in (info.get("Runtimes") or {}) or any(find_on_path(name) for name in HOOKS):
        return True
    folders = [f"{root}/{folder}" for folder in CDI]
    return any("nvidia" in name for folder in folders if os.path.isdir(folder) for name in os.listdir(folder))


def _free(folder: str | None) -> int | None:
    """Bytes on the disk below it, which another user's folder tells too; None where it can't be looked at."""
    try:
        disk = os.statvfs(folder or "")
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def read_image(engine: Engine, reference: str) -> dict[str, Any] | None:
    """One image by reference, or None where the engine knows no such."""
    # A reference that the engine can't read names nothing, too.
    found = engine.get(f"/images/{quoted(reference)}/json", absent=(NOT_FOUND, BAD_REQUEST))
    if found is None:
        return None
    return {
        "reference": reference,
        "id": found["Id"],
        "layers": (found.get("RootFS") or {}).get("Layers") or [],
        "config": _config_hash(found.get("Config") or {}),
        "architecture": found.get("Architecture") or "",
        "digests": found.get("RepoDigests") or [],
    }


def read_containers(engine: Engine, pair: str) -> list[dict[str, Any]]:
    """What the engine tells of every container of the pair: those with our label, and those of its compose project."""
    ids: dict[str, None] = {}
    for label in (f"dspark.pair={pair}", f"com.docker.compose.project={pair}"):
        filters = quoted(json.dumps({"label": [label]}))
        ids.update((found["Id"], None) for found in engine.get(f"/containers/json?all=1&filters={filters}") or [])
    inspected = (engine.get(f"/containers/{container_id}/json") for container_id in ids)
    return [_of_interest(found) for found in inspected if found is not None]


def _of_interest(found: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's own names and shape, so that one parser reads it here and there.

    Without environment and arguments, which may hold secrets, but for the one flag that tells how much it holds.
    """
    config, host = found.get("Config") or {}, found.get("HostConfig") or {}
    argv = config.get("Cmd") or []
    at = argv.index(UTILIZATION_FLAG) if UTILIZATION_FLAG in argv else len(argv)
    kept = {name: found.get(name) for name in ("Id", "Name", "Image", "State", "RestartCount")}
    mounts = [{name: each.get(name) for name in ("Source", "Destination")} for each in found.get("Mounts") or []]
    return {
        **kept,
        "Mounts": mounts,
        "HostConfig": {name: host.get(name) for name in ("Ulimits", "Devices", "DeviceRequests")},
        "Config": {**{name: config.get(name) for name in ("Labels", "StopTimeout")}, "Cmd": argv[at : at + 2]},
    }


def _config_hash(config: Mapping[str, Any]) -> str:
    """One value over what a container of the image runs with; two images with equal layers may differ in it."""
    runs_with = {name: config.get(name) or None for name in ("Env", "Entrypoint", "Cmd", "WorkingDir", "User")}
    return hashlib.sha256(json.dumps(runs_with, sort_keys=True).encode()).hexdigest()
