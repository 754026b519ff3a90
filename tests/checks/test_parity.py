"""Two ranks held against each other: everything that may differ between them, one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dspark_deploy.checks.parity import Both, Compared, compare
from dspark_deploy.facts.parity import RankSeen, ReleaseFile, Value
from dspark_deploy.plan.argv import RANK_FLAGS, serve_argv
from dspark_deploy.plan.environment import environment, rank_names
from tests.plan.deployments import PROFILES, deploy
from tests.samples import image

DEPLOYMENT = deploy("agent-1m")
SERVE = "/opt/dspark/serve.sh"
PACKAGE = {"__init__.py": "aa" * 32, "envs.py": "bb" * 32}


def rank(number: int, **changes: Any) -> RankSeen:
    """A rank as `up` starts it."""
    own = DEPLOYMENT.ranks[number]
    known = RankSeen(
        node=own.node,
        container=f"c{number}",
        started_at="2026-09-01T10:00:00Z",
        release="0123456789ab",
        family="anemll",
        image=image(id=f"sha256:{number}"),
        argv=tuple(map(Value, ("/bin/bash", SERVE, *serve_argv(DEPLOYMENT, own)))),
        environment={name: Value(value) for name, value in environment(DEPLOYMENT, own).items()},
        mounts={"/cache/huggingface": "read-write", SERVE: "read-only"},
        mounted={SERVE: "cc" * 32},
        package=PACKAGE,
        printed=("dspark prepare: encoder: corrected /usr/vllm/encoder.py", "dspark prepare: effort: corrected x"),
        release_files=(ReleaseFile("serve.sh", "cc" * 32, "whole", SERVE), ReleaseFile(".env", "dd" * 32, "whole")),
    )
    return replace(known, **changes)


def findings(head: Mapping[str, Any] | None = None, worker: Mapping[str, Any] | None = None) -> tuple[Compared, ...]:
    """What is said of a healthy pair with something changed on one side."""
    own_mounts = frozenset({"/cache/huggingface/hub"})
    both = Both(rank(0, **head or {}), rank(1, **worker or {}), rank_names(DEPLOYMENT.family), own_mounts)
    return compare(both)


def differing(**worker: Any) -> list[tuple[str | None, str | None, str | None]]:
    """What a pair differs in whose worker is not as it should be."""
    return [(each.what, each.head, each.worker) for each in findings(worker=worker) if each.status == "fail"]


def with_value(name: str, value: str | Value | None) -> dict[str, Value]:
    """The worker's environment with one variable changed, or, for None, without it."""
    found = dict(rank(1).environment)
    found.pop(name, None)
    if value is not None:
        found[name] = value if isinstance(value, Value) else Value(value)
    return found


def words(*changes: tuple[str, str]) -> tuple[Value, ...]:
    """The worker's command line, some words replaced."""
    replaced = dict(changes)
    return tuple(Value(replaced.get(word.text, word.text)) for word in rank(1).argv)


def test_a_healthy_pair_agrees_in_every_subject() -> None:
    told = findings()
    assert {each.status for each in told} == {"ok"}
    assert [each.id for each in told] == [
        "release",
        "image",
        "argv",
        "environment",
        "mounts",
        "files",
        "package",
        "preparation",
    ]


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_rendered_for_a_rank_alone_is_declared_so(profile: str) -> None:
    deployment = deploy(profile)
    head, worker = (environment(deployment, each) for each in deployment.ranks)
    assert {name for name in head | worker if head.get(name) != worker.get(name)} <= rank_names(deployment.family)
    lines = [serve_argv(deployment, each) for each in deployment.ranks]
    assert {word for word in set(lines[0]) ^ set(lines[1]) if word.startswith("--")} <= set(RANK_FLAGS)


def test_a_variable_that_was_changed_on_one_node_is_named_with_both_values() -> None:
    name = "VLLM_USE_B12X_MOE"
    assert differing(environment=with_value(name, "0")) == [(f"environment {name}", "1", "0")]
    assert differing(environment=with_value(name, None)) == [(f"environment {name}", "1", "has it not")]


@pytest.mark.parametrize("name", sorted(rank_names(DEPLOYMENT.family)))
def test_what_is_each_ranks_own_may_differ(name: str) -> None:
    assert differing(environment=with_value(name, "something else")) == []


def test_of_a_secret_it_is_told_that_it_differs_and_nothing_else() -> None:
    head = {"environment": {**rank(0).environment, "HF_TOKEN": Value("", "1f")}}
    same, other = (findings(head, {"environment": with_value("HF_TOKEN", Value("", mark))}) for mark in ("1f", "2e"))
    assert {each.status for each in same} == {"ok"}
    (difference,) = (each for each in other if each.status == "fail")
    assert (difference.head, difference.worker) == ("[redacted]", "[redacted]")
    assert "2e" not in str(difference)


def test_a_value_that_looks_like_a_secret_is_not_shown_whatever_its_name() -> None:
    told = findings(worker={"environment": with_value("NOTE", "hf_abcdefghijklmnop")})
    (difference,) = (each for each in told if each.status == "fail")
    assert difference.worker == "[redacted]"
    assert "abcdefghij" not in str(difference)


def test_another_flag_or_value_is_named() -> None:
    assert differing(argv=words(("8192", "4096"))) == [("--max-num-batched-tokens", "8192", "4096")]
    assert differing(argv=(*rank(1).argv, Value("--enforce-eager"))) == [
        ("--enforce-eager", "has it not", "without a value")
    ]
    assert differing(argv=words(("serve", "bench"))) == [
        (
            "the command before its flags",
            f"/bin/bash {SERVE} serve {DEPLOYMENT.model.id}",
            f"/bin/bash {SERVE} bench {DEPLOYMENT.model.id}",
        )
    ]


def test_a_flag_is_the_same_however_its_value_is_joined_to_it() -> None:
    joined = tuple(Value(word.text) for word in rank(1).argv if word.text not in {"--port", "8888"})
    assert differing(argv=(*joined, Value("--port=8888"))) == []


def test_an_images_content_decides_and_not_its_id() -> None:
    ((what, head, worker),) = differing(image=image(id="sha256:1", layers=("sha256:aa", "sha256:cc")))
    assert what == "image"
    assert head != worker
    assert differing(image=image(id="sha256:9")) == []


def test_a_mount_that_one_rank_lacks_is_named_unless_it_may() -> None:
    assert differing(mounts={"/cache/huggingface": "read-write"}) == [(f"mount {SERVE}", "read-only", "has it not")]
    assert differing(mounts={**rank(1).mounts, "/cache/huggingface/hub": "read-write"}) == []


def test_a_file_that_is_not_what_was_pushed_is_named_with_its_node() -> None:
    told = findings(worker={"mounted": {SERVE: "ee" * 32}})
    (difference,) = (each for each in told if each.status == "fail")
    assert (difference.node, difference.what) == ("worker", f"file {SERVE}")
    assert (difference.head, difference.worker) == ("cccccccccccc", "eeeeeeeeeeee")


def test_files_that_no_release_names_are_held_against_each_other() -> None:
    patched = {SERVE: "cc" * 32, "/opt/patches/a.py": "11" * 32}
    told = findings({"mounted": patched}, {"mounted": {**patched, "/opt/patches/a.py": "22" * 32}})
    assert [each.what for each in told if each.status == "fail"] == ["file /opt/patches/a.py"]


def test_a_file_that_was_replaced_after_the_start_is_a_warning() -> None:
    files = (ReleaseFile("serve.sh", "cc" * 32, "changed", SERVE), ReleaseFile(".env", "dd" * 32, "missing"))
    told = findings(worker={"release_files": files})
    assert [(each.status, each.what) for each in told if each.status != "ok"] == [
        ("warn", "release file serve.sh"),
        ("warn", "release file .env"),
    ]


def test_a_file_of_the_package_that_differs_is_named() -> None:
    assert differing(package={**PACKAGE, "envs.py": "ee" * 32, "more.py": "11" * 32}) == [
        ("vllm package envs.py", "bbbbbbbbbbbb", "eeeeeeeeeeee"),
        ("vllm package more.py", "not there", "111111111111"),
    ]


def test_of_many_differing_files_the_first_are_named_and_the_rest_counted() -> None:
    told = differing(package={f"{number:04}.py": "ee" * 32 for number in range(100)})
    assert len(told) == 21


def test_what_could_not_be_read_does_not_pass_for_equal() -> None:
    told = findings(worker={"package": None, "untold": {"package": "python ended with 142"}})
    (difference,) = (each for each in told if each.status == "fail")
    assert "python ended with 142" in difference.message


def test_other_steps_of_the_preparation_are_a_difference_and_a_second_start_is_none() -> None:
    again = tuple(line.replace("corrected", "already right in") for line in rank(1).printed)
    assert differing(printed=again) == []
    assert differing(printed=again[:1]) == [("preparation", "encoder, effort", "encoder")]


def test_an_optional_patch_that_failed_on_one_rank_is_a_difference() -> None:
    applied, already, failed = (
        (*rank(1).printed, f"dspark patch: 1-recipe/a.py: {outcome}, optional)")
        for outcome in ("applied (exit 0", "already (exit 0", "failed (exit 3")
    )
    told = findings({"printed": applied}, {"printed": failed})
    (difference,) = (each for each in told if each.status == "fail")
    assert (difference.what, difference.head, difference.worker) == ("patch 1-recipe/a.py", "done", "failed")
    assert {each.status for each in findings({"printed": applied}, {"printed": already})} == {"ok"}


def test_a_log_without_its_beginning_is_said_and_no_difference() -> None:
    told = findings(worker={"printed": ()})
    assert [(each.id, each.status) for each in told if each.status != "ok"] == [("preparation", "skip")]


def test_two_releases_are_a_difference() -> None:
    assert differing(release="ba9876543210")[0] == ("release", "0123456789ab", "ba9876543210")
