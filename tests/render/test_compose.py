"""The compose file, as the real docker compose reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dspark_deploy.errors import ConfigError
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.render.compose import compose_file
from dspark_deploy.render.release import File

from .conftest import Compose, arguments

ARGV = ("serve", "org/model", "--reasoning-config", '{"start":"<think>","cost":"$5"}', "--headless")
NO_ENVIRONMENT = File("NCCL_NET=IB\n")


def service(compose: Compose, folder: Path, text: File, env: File = NO_ENVIRONMENT) -> dict[str, Any]:
    parsed: dict[str, Any] = compose.config(folder, {"compose.yaml": text, ".env": env})["services"]["vllm"]
    return parsed


@pytest.mark.parametrize("version", ["compose", "newer_compose"])
def test_compose_reads_exactly_the_service_that_was_meant(
    deployment: Deployment, tmp_path: Path, version: str, request: pytest.FixtureRequest
) -> None:
    compose: Compose = request.getfixturevalue(version)
    text = compose_file(deployment, deployment.worker, ARGV, release="0123456789ab", tool="1.2.3")
    parsed = compose.config(tmp_path, {"compose.yaml": text, ".env": NO_ENVIRONMENT})
    assert parsed["name"] == "spark-pair"
    assert list(parsed["services"]) == ["vllm"]
    read = parsed["services"]["vllm"]
    volumes = [{k: v for k, v in volume.items() if k != "bind"} for volume in read.pop("volumes")]
    devices = read.pop("devices")
    assert read == {
        "image": "ghcr.io/anemll/dspark-vllm-gx10:0.1.1",
        "pull_policy": "never",
        "entrypoint": ["/bin/bash", "/opt/dspark/serve.sh"],
        "command": [word.replace("$", "$$") for word in ARGV],
        "environment": {"NCCL_NET": "IB"},
        "network_mode": "host",
        "ipc": "host",
        "shm_size": "68719476736",
        "ulimits": {"memlock": -1, "stack": 67108864},
        "deploy": {
            "resources": {"reservations": {"devices": [{"driver": "nvidia", "count": -1, "capabilities": ["gpu"]}]}},
            "placement": {},
        },
        "restart": "no",
        "stop_grace_period": "10s",
        "labels": {
            "dspark.pair": "spark-pair",
            "dspark.rank": "1",
            "dspark.node": "worker",
            "dspark.release": "0123456789ab",
            "dspark.profile": "agent-1m",
            "dspark.family": "anemll",
            "dspark.tool": "1.2.3",
        },
    }
    assert volumes == [
        {"type": "bind", "source": "/data/models/hf", "target": "/cache/huggingface"},
        {"type": "bind", "source": "/data/$$hub cache", "target": "/cache/huggingface/hub"},
        {"type": "bind", "source": f"{tmp_path}/serve.sh", "target": "/opt/dspark/serve.sh", "read_only": True},
        {"type": "bind", "source": f"{tmp_path}/prepare.py", "target": "/opt/dspark/prepare.py", "read_only": True},
    ]
    assert "/dev/infiniband" in str(devices)


def test_no_missing_source_is_made_a_folder(deployment: Deployment) -> None:
    text = compose_file(deployment, deployment.worker, ARGV, release="", tool="").content
    assert text.count("type: bind") == text.count("bind: {create_host_path: false}") == 4


def test_a_hub_cache_is_mounted_only_where_it_lies_elsewhere(deployment: Deployment) -> None:
    text = compose_file(deployment, deployment.head, ARGV, release="", tool="").content
    assert "/cache/huggingface/hub" not in text


def test_there_is_no_health_check_that_a_headless_rank_would_fail(deployment: Deployment) -> None:
    assert "healthcheck" not in compose_file(deployment, deployment.worker, ARGV, release="", tool="").content


def test_what_a_family_asks_for_is_rendered(deployment: Deployment, compose: Compose, tmp_path: Path) -> None:
    family = deployment.family.model_copy(
        update={"ipc": "private", "shm_size": "1gb", "cap_add": ("SYS_NICE",), "security_opt": ("seccomp=unconfined",)}
    )
    wanted = replace(deployment, family=family, restart="unless-stopped")
    read = service(compose, tmp_path, compose_file(wanted, wanted.head, ARGV, release="", tool=""))
    assert read["cap_add"] == ["SYS_NICE"]
    assert read["security_opt"] == ["seccomp=unconfined"]
    assert (read["ipc"], read["shm_size"], read["restart"]) == ("private", "1073741824", "unless-stopped")


def test_a_family_without_gpu_and_rdma_gets_neither(deployment: Deployment, compose: Compose, tmp_path: Path) -> None:
    family = deployment.family.model_copy(update={"gpu": False, "rdma": False})
    wanted = replace(deployment, family=family)
    read = service(compose, tmp_path, compose_file(wanted, wanted.head, ARGV, release="", tool=""))
    assert "devices" not in read
    assert "deploy" not in read


def test_an_argument_that_no_process_can_hold_is_refused(deployment: Deployment) -> None:
    with pytest.raises(ConfigError, match=r"holds U\+0000"):
        compose_file(deployment, deployment.head, ("serve", "a\0b"), release="", tool="")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(arguments(), min_size=50, max_size=400))
def test_any_argument_comes_back_from_compose_as_it_was(
    deployment: Deployment, compose: Compose, words: list[str]
) -> None:
    text = compose_file(deployment, deployment.head, words, release="", tool="")
    with TemporaryDirectory() as folder:
        read = service(compose, Path(folder), text)
    assert [word.replace("$$", "$") for word in read["command"]] == words
