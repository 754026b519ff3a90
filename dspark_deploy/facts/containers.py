"""A container as the Docker engine describes it: one parser for the probe and for the engine's own answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from dspark_deploy.facts.node import Container, Granted

NEVER = "0001-01-01T00:00:00Z"  # the engine's word for a time that has not come
UTILIZATION_FLAG = "--gpu-memory-utilization"


def parse_container(found: Mapping[str, Any]) -> Container:
    """Read what `GET /containers/{id}/json` answers; the probe sends the same names and shape.

    A container that was never started has neither start time nor exit code.
    """
    state = found.get("State") or {}
    config = found.get("Config") or {}
    started = state.get("StartedAt")
    was_started = bool(started) and started != NEVER
    return Container(
        id=found["Id"],
        name=str(found.get("Name") or "").lstrip("/"),
        state=state.get("Status") or "unknown",
        image_id=found.get("Image") or "",
        labels=dict(config.get("Labels") or {}),
        started_at=started if was_started else None,
        exit_code=state.get("ExitCode") if was_started and not state.get("Running") else None,
        restarts=found.get("RestartCount") or 0,
        oom_killed=bool(state.get("OOMKilled")),
        stop_timeout_s=config.get("StopTimeout"),
        granted=_granted(found),
        gpu_memory_utilization=_utilization(config.get("Cmd") or []),
        finished_at=_finished(state) if was_started else None,
    )


def _finished(state: Mapping[str, Any]) -> str | None:
    """When it ended last. The engine keeps that of the run before while it runs again."""
    finished = state.get("FinishedAt")
    return finished if finished and finished != NEVER and not state.get("Running") else None


def _granted(found: Mapping[str, Any]) -> Granted | None:
    host = found.get("HostConfig")
    if host is None:
        return None
    limits = {each["Name"]: each["Hard"] for each in host.get("Ulimits") or []}
    return Granted(
        mounts=tuple(sorted(each["Destination"] for each in found.get("Mounts") or [])),
        devices=tuple(each["PathInContainer"] for each in host.get("Devices") or []),
        memlock_bytes=limits.get("memlock"),
        gpu=bool(host.get("DeviceRequests")),
    )


def _utilization(argv: Sequence[str]) -> float | None:
    """The value of the flag; None where there is none, or none that is a number."""
    following = dict(pairwise(argv)).get(UTILIZATION_FLAG, "")
    try:
        return float(following)
    except ValueError:
        return None
