"""What every bundled profile renders, against files that a person can read, and by the real compose."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dspark_deploy.render.release import File

from .conftest import Compose
from .refresh_golden import rendered, stored

RENDERED = rendered()
RANKS = sorted({name.rpartition("/")[0] for name in RENDERED})


def files_of(rank: str) -> dict[str, File]:
    return {name.rpartition("/")[2]: File(text) for name, text in RENDERED.items() if name.startswith(f"{rank}/")}


@pytest.mark.parametrize("name", sorted(RENDERED))
def test_what_is_rendered_changes_only_on_purpose(name: str) -> None:
    assert RENDERED[name] == stored().get(name), "meant so? then `make golden`, and read the diff"


def test_no_golden_file_is_left_of_a_profile_that_is_gone() -> None:
    assert stored().keys() - RENDERED.keys() == set()


@pytest.mark.parametrize("version", ["compose", "newer_compose"])
@pytest.mark.parametrize("rank", RANKS)
def test_compose_accepts_every_rank_of_every_profile(
    rank: str, version: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    compose: Compose = request.getfixturevalue(version)
    config = compose.config(tmp_path, files_of(rank))
    service = config["services"]["vllm"]
    assert service["labels"]["dspark.node"] == rank.rpartition("/")[2]
    assert ("--headless" in service["command"]) == (service["labels"]["dspark.rank"] == "1")
    assert "" not in service["environment"].values()


@pytest.mark.parametrize("rank", RANKS)
def test_the_shell_finds_no_fault_in_any_start_script(rank: str) -> None:
    subprocess.run(["bash", "-n"], input=files_of(rank)["serve.sh"].content, text=True, check=True)


@pytest.mark.parametrize("name", sorted(name for name in RENDERED if name.endswith("compose.yaml")))
def test_compose_has_no_variable_left_to_fill_in(name: str) -> None:
    lines = [line for line in RENDERED[name].splitlines() if not line.startswith("#")]
    assert "$" not in "\n".join(lines).replace("$$", "")
