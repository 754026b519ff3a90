"""`parity` on the embedded pair; tests/bed/test_parity.py has the same on two real hosts."""

from __future__ import annotations

from ..parity import (
    PREPARE,
    SEQUENCES,
    VARIABLE,
    change_the_package,
    container,
    differences,
    release,
    start_by_hand,
)
from .pair import RehearsedPair


def test_a_pair_as_up_left_it_agrees_until_a_file_changes_under_one_rank(rehearsed: RehearsedPair) -> None:
    rehearsed.dspark("up", "-p", "agent-1m").check()
    assert differences(rehearsed) == set()
    assert "the ranks agreed when they were compared at 20" in rehearsed.dspark("status").check().stdout
    change_the_package(rehearsed, "worker")
    rehearsed.login("head", f"echo '# mine' >> {release(rehearsed)}/prepare.py").check()
    assert differences(rehearsed) == {"vllm package envs.py", f"file {PREPARE}"}
    assert "the ranks were found to differ at 20" in rehearsed.dspark("status").check().stdout


def test_ranks_that_were_started_by_hand_with_other_values_are_found(rehearsed: RehearsedPair) -> None:
    assert_nothing_to_compare(rehearsed, "no rank of rehearsal runs")
    rehearsed.dspark("up", "-p", "agent-1m").check()
    start_by_hand(rehearsed, VARIABLE, SEQUENCES)
    assert {"environment VLLM_USE_B12X_MOE", "--max-num-seqs"} <= differences(rehearsed)
    rehearsed.api("head").remove(container(rehearsed, "head"))
    assert_nothing_to_compare(
        rehearsed, "runs: there is nothing to compare"
    )  # a worker that lost its head may have ended


def assert_nothing_to_compare(pair: RehearsedPair, why: str) -> None:
    ran = pair.dspark("parity")
    assert ran.returncode == 8, ran
    assert why in ran.stderr
