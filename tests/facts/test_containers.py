from __future__ import annotations

from typing import Any

import pytest

from dspark_deploy.facts.containers import parse_container
from dspark_deploy.facts.node import Container

RUNNING = {
    "Id": "c1",
    "Name": "/spark-pair-vllm-1",
    "Image": "sha256:1",
    "RestartCount": 2,
    "State": {"Status": "running", "Running": True, "StartedAt": "2026-09-01T10:00:00.5Z", "ExitCode": 0},
    "Config": {"Labels": {"dspark.pair": "spark-pair"}, "StopTimeout": 7, "Env": ["SECRET=x"]},
}


def test_a_running_container_has_no_exit_code() -> None:
    assert parse_container(RUNNING) == Container(
        id="c1",
        name="spark-pair-vllm-1",
        state="running",
        image_id="sha256:1",
        labels={"dspark.pair": "spark-pair"},
        started_at="2026-09-01T10:00:00.5Z",
        exit_code=None,
        restarts=2,
        oom_killed=False,
        stop_timeout_s=7,
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"Status": "exited", "StartedAt": "2026-09-01T10:00:00Z", "ExitCode": 137, "OOMKilled": True}, (137, True)),
        ({"Status": "exited", "StartedAt": "2026-09-01T10:00:00Z", "ExitCode": 0}, (0, False)),
        ({"Status": "created", "StartedAt": "0001-01-01T00:00:00Z", "ExitCode": 0}, (None, False)),
    ],
)
def test_an_exit_code_is_that_of_one_that_ended(state: dict[str, Any], expected: tuple[int | None, bool]) -> None:
    container = parse_container({**RUNNING, "State": state})
    assert (container.exit_code, container.oom_killed) == expected
    assert container.state == state["Status"]


def test_what_an_old_engine_leaves_out_is_nothing() -> None:
    container = parse_container({"Id": "c1", "Config": {"Labels": None}})
    assert (container.name, container.state, container.labels, container.stop_timeout_s) == ("", "unknown", {}, None)
