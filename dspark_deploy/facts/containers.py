"""A container as the Docker engine describes it: one parser for the probe and for the engine's own answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dspark_deploy.facts.node import Container

NEVER = "0001-01-01T00:00:00Z"  # the engine's word for a time that has not come


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
    )
