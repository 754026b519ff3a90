"""The env file, as the real docker compose reads it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dspark_deploy.errors import ConfigError
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.render.env import env_file
from dspark_deploy.render.release import File

from .conftest import Compose, arguments

COMPOSE_FILE = File('name: x\nservices: {vllm: {image: a, env_file: ["./.env"]}}\n')


def read_back(compose: Compose, env: File) -> dict[str, str]:
    with TemporaryDirectory() as folder:
        config = compose.config(Path(folder), {"compose.yaml": COMPOSE_FILE, ".env": env})
    environment: dict[str, str] = config["services"]["vllm"]["environment"]
    return {name: value.replace("$$", "$") for name, value in environment.items()}


def test_a_ranks_own_values_stand_first_and_all_is_sorted(deployment: Deployment) -> None:
    own, peer = {"B": "2", "C": "3", "A": "1"}, {"A": "1", "B": "4", "C": "3"}
    lines = env_file(deployment, deployment.worker, own, peer, tool="1.2.3").content.splitlines()
    assert [line for line in lines[1:] if not line.startswith("# R")] == [
        "",
        "# This rank's own",
        'B="2"',
        "",
        "# The same on both ranks",
        'A="1"',
        'C="3"',
    ]


def test_only_its_owner_reads_it(deployment: Deployment) -> None:
    assert env_file(deployment, deployment.head, {"A": "1"}, {}, tool="").mode == 0o600


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("VLLM_PLUGINS", "", "VLLM_PLUGINS: is empty"),
        ("HF_HOME", "/a\0b", r"HF_HOME: holds U\+0000"),
        ("HF_HOME", "\udcff", r"HF_HOME: holds U\+DCFF"),
        ("A B", "1", "'A B': not a name"),
        ("A=B", "1", "'A=B': not a name"),
        ("A\n", "1", r"'A\\n': not a name"),
        ("COMPOSE_PROJECT_NAME", "other", "COMPOSE_PROJECT_NAME: would steer docker compose"),
    ],
)
def test_what_no_container_can_be_given_is_refused_by_name(
    deployment: Deployment, name: str, value: str, wrong: str
) -> None:
    with pytest.raises(ConfigError, match=wrong):
        env_file(deployment, deployment.head, {name: value}, {}, tool="")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(arguments(min_size=1), min_size=50, max_size=300))
def test_any_value_comes_back_from_compose_as_it_was(
    deployment: Deployment, compose: Compose, values: list[str]
) -> None:
    environment = {f"V{number}": value for number, value in enumerate(values)}
    assert read_back(compose, env_file(deployment, deployment.head, environment, {}, tool="")) == environment


def test_a_newer_compose_reads_the_same(deployment: Deployment, newer_compose: Compose) -> None:
    environment = {"LINES": 'a\n"b"\r\n\t$c ${d} $$ \\', "HASH": " #'é😀' ", "BLANK": " ", "ESCAPES": "\\n\\u0041\\$"}
    assert read_back(newer_compose, env_file(deployment, deployment.head, environment, {}, tool="")) == environment
