"""What became of patches, read off a rank's log."""

from __future__ import annotations

from dspark_deploy.facts.patches import PatchOutcome, failed, patch_outcomes

LOG = """\
dspark prepare: effort: already right: deepseek_v4.py
dspark patch: 1-recipe/hotfix-79.sh: | spin-wait: 0.002
dspark patch: 1-recipe/hotfix-79.sh: applied (exit 0, required)
dspark patch: 1-recipe/sub/b.py: already (exit 0, required)
dspark patch: 1-recipe/odd.sh: | dspark patch: 1-recipe/b.py: applied (exit 0, required)
dspark patch: 1-recipe/odd.sh: | second: (exit 0, required)
dspark patch: 1-recipe/odd.sh: failed (exit -9, optional)
dspark patch: 2-hybrid: plugin gb10_hybrid_nvfp4: applied (exit 0, required)
dspark patch: FATAL: something: vllm is not started
"""


def test_each_outcome_has_what_was_printed_before_it() -> None:
    assert patch_outcomes(LOG.splitlines()) == (
        PatchOutcome("1-recipe/hotfix-79.sh", "applied", 0, True, ("spin-wait: 0.002",)),
        PatchOutcome("1-recipe/sub/b.py", "already", 0, True),
        PatchOutcome(
            "1-recipe/odd.sh",
            "failed",
            -9,
            False,
            ("dspark patch: 1-recipe/b.py: applied (exit 0, required)", "second: (exit 0, required)"),
        ),
        PatchOutcome("2-hybrid: plugin gb10_hybrid_nvfp4", "applied", 0, True),
    )


def test_of_a_container_that_was_started_again_the_last_start_counts() -> None:
    again = [*LOG.splitlines(), "dspark patch: 1-recipe/hotfix-79.sh: already (exit 0, required)\r"]
    first, *others = patch_outcomes(again)
    assert (first.name, first.outcome, first.tail) == ("1-recipe/hotfix-79.sh", "already", ())
    assert [each.name for each in failed(others)] == ["1-recipe/odd.sh"]


def test_a_log_without_patches_tells_of_none() -> None:
    assert patch_outcomes(["(APIServer pid=1) INFO ready"]) == ()
