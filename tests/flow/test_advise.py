"""`advise` over the bundled profiles, and over the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.capacity.advice import Wanted
from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.advise import give_advice
from dspark_deploy.flow.own import Own
from dspark_deploy.flow.wish import Wish
from tests.capacity.test_pool import recorded_boot


def wish(folder: Path, profile: str | None = None) -> Wish:
    return Wish(directory=folder, home=folder, profile=profile)


def test_every_profile_is_judged(tmp_path: Path) -> None:
    ranked = give_advice(wish(tmp_path), Wanted(4, 50_000, 200_000, 2048)).advice.ranked
    assert ranked[0].profile == "agent-1m"
    assert {"agent-1m", "coding-1m", "deep-1m", "balanced-500k", "concurrent-200k", "stage-c-c12"} <= {
        each.profile for each in ranked
    }


def test_many_short_sessions_belong_on_the_profile_with_many_places(tmp_path: Path) -> None:
    best = give_advice(wish(tmp_path), Wanted(16, 30_000, 60_000, 2048)).advice.ranked[0]
    assert (best.profile, best.family, best.suits) == ("concurrent-200k", "stage-c", True)


def test_a_profile_of_the_users_own_is_judged_with_the_others(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "ours.yaml").write_text(
        "name: ours\nextends: agent-1m\ntitle: Ours\nmax_model_len: 50000\nmax_num_seqs: 10\n"
    )
    best = give_advice(wish(tmp_path), Wanted(9, 20_000, 40_000, 1000)).advice.ranked
    assert "ours" in {each.profile for each in best if each.suits}


def test_one_profile_may_be_judged_alone(tmp_path: Path) -> None:
    (only,) = give_advice(wish(tmp_path, "deep-1m"), Wanted(3, 900_000, 900_000, 2048)).advice.ranked
    assert (only.profile, only.waiting) == ("deep-1m", 1)
    with pytest.raises(ConfigError, match="no profile is called `deep`"):
        give_advice(wish(tmp_path, "deep"), Wanted(1, 1, 1, 1))


def test_the_pairs_own_boots_count(tmp_path: Path) -> None:
    own = recorded_boot(pool_tokens=100_000, concurrency=0.10)
    (only,) = give_advice(wish(tmp_path, "agent-1m"), Wanted(3, 60_000, 60_000, 0), Own((own,))).advice.ranked
    assert (only.pool_tokens, only.pool_kind, only.waiting) == (100_000, "recorded", 2)
