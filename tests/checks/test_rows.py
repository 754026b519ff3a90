"""Rows of the failure table that rendering rules out, and the page that says how each row is told."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from dspark_deploy.plan.argv import serve_argv
from dspark_deploy.plan.environment import environment
from tests.checks.refresh_docs import PAGE, evidence, failures, page, reason
from tests.checks.rows import CHECKED, NOT_TOLD, RENDERED
from tests.plan.deployments import CATALOGUE, PROFILES, deploy, example_inventory

ROOT = Path(__file__).parents[2]
FAMILIES = tuple(CATALOGUE.families())


def test_the_page_is_as_it_is_generated() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.checks.refresh_docs"


def test_every_row_has_a_test_or_a_reason() -> None:
    for row in failures():
        assert any(evidence(row.id)) or reason(row)


def test_no_reason_is_given_for_a_row_that_has_a_test() -> None:
    assert [row for row in NOT_TOLD if any(evidence(row))] == []


@pytest.mark.parametrize("named", sorted({test for tests in (*RENDERED.values(), *CHECKED.values()) for test in tests}))
def test_every_test_that_the_page_names_exists(named: str) -> None:
    file, _, function = named.partition("::")
    assert _functions(file)
    assert function == "*" or function in _functions(file)


@cache
def _functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("profile", PROFILES)
def test_both_ranks_are_given_one_master(profile: str) -> None:
    deployment = deploy(profile)
    masters = set()
    for rank in deployment.ranks:
        words = list(serve_argv(deployment, rank))
        masters.add((words[words.index("--master-addr") + 1], words[words.index("--master-port") + 1]))
    assert masters == {(str(deployment.head.address), str(deployment.master_port))}


def test_a_stop_is_never_waited_for_in_minutes() -> None:
    assert all(family.stop_grace_s <= 10 for family in FAMILIES)


def test_the_api_listens_where_clients_are() -> None:
    assert example_inventory().api.bind == "0.0.0.0"
    words = list(serve_argv(deploy(), deploy().head))
    assert words[words.index("--host") + 1] == "0.0.0.0"


@pytest.mark.parametrize("profile", PROFILES)
def test_compiled_kernels_outlive_their_container(profile: str) -> None:
    """Every cache of compiled code lies below the mount."""
    deployment = deploy(profile)
    given = environment(deployment, deployment.head)
    folders = [given[name] for name in ("VLLM_CACHE_ROOT", "TILELANG_CACHE_DIR")]
    assert all(folder.startswith(f"{deployment.family.hf_home_in_container}/") for folder in folders)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_length_beyond_the_config_is_allowed_where_it_is_asked_for(profile: str) -> None:
    deployment = deploy(profile)
    assert environment(deployment, deployment.head)["VLLM_ALLOW_LONG_MAX_MODEL_LEN"] == "1"
