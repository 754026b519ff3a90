"""Advice: which profile first, what waits, what to paste, and when another way is better."""

from __future__ import annotations

from typing import Any

import pytest

from dspark_deploy.capacity.advice import Advice, Candidate, Ranked, Seconds, Wanted, advise, time_to_first
from tests.capacity.lanes import MATRIX, lane

CANDIDATES = (
    Candidate(lane("agent-1m"), 64),
    Candidate(lane("coding-1m", 2_259_155, "predicted"), 64),
    Candidate(lane("deep-1m"), 64),
    Candidate(lane("balanced-500k", 1_943_000, "predicted"), 64),
    Candidate(lane("concurrent-200k", 1_064_088, "predicted", sweep=None), None),
    Candidate(lane("stage-c-c12", 3_225_280, sweep=None), None),
    Candidate(lane("diagnostic-fp8", None, sweep=None), None),
)


def ask(sessions: int, typical: int, longest: int | None = None, **more: Any) -> Advice:
    return advise(Wanted(sessions, typical, longest or typical, 2048, **more), CANDIDATES)


def judged(advice: Advice, profile: str) -> Ranked:
    return next(each for each in advice.ranked if each.profile == profile)


@pytest.mark.parametrize(
    ("sessions", "typical", "longest", "best"),
    [
        (4, 50_000, 200_000, "agent-1m"),  # measured, and room to spare
        (12, 40_000, 150_000, "concurrent-200k"),  # the only one with so many places
        (2, 600_000, 1_000_000, "deep-1m"),  # two places for two
        (3, 900_000, 900_000, "stage-c-c12"),  # the only pool that holds them
    ],
)
def test_the_profile_that_suits_comes_first(sessions: int, typical: int, longest: int, best: str) -> None:
    first = ask(sessions, typical, longest).ranked[0]
    assert (first.profile, first.suits) == (best, True)


def test_the_documented_shapes_carry_their_image_family() -> None:
    shapes = {(each.max_model_len, each.max_num_seqs): each.family for each in ask(1, 1000).ranked}
    assert shapes | {
        (1_048_576, 6): "anemll",
        (1_048_576, 4): "anemll",
        (200_000, 16): "stage-c",
        (1_048_576, 2): "anemll",
        (500_000, 4): "anemll",
    } == shapes | {(1_048_576, 6): "anemll"}


def test_what_would_wait_is_said_with_the_value_that_lets_more_run() -> None:
    agent = judged(ask(12, 40_000), "agent-1m")
    assert (agent.waiting, agent.suits) == (6, False)
    assert "6 of 12 sessions wait: it runs 6 of them" in agent.reasons
    assert agent.change == "dspark up -p agent-1m --set max_num_seqs=10"  # 10 x 6 are 60 rows of 64
    assert agent.why_change == "4 more of them run at once"


def test_where_the_pool_holds_fewer_than_the_profile_runs_the_rest_is_made_to_wait() -> None:
    agent = judged(ask(3, 900_000), "agent-1m")
    assert (agent.waiting, agent.preempts) == (1, True)
    assert agent.change == "dspark up -p agent-1m --set max_num_seqs=2"


def test_a_length_that_is_too_short_for_the_longest_can_be_set() -> None:
    balanced = judged(ask(2, 100_000, 600_000), "balanced-500k")
    assert not balanced.serves_longest
    assert balanced.change == "dspark up -p balanced-500k --set max_model_len=602112"  # 602048, up to a whole block
    assert "602048 tokens are more than its max_model_len 500000" in balanced.reasons


def test_a_wish_that_nobody_meets_is_answered_with_what_would_be_quick_enough() -> None:
    found = ask(6, 20_000, ttft_s=10.0)
    assert found.ranked[0].profile == "agent-1m"  # measured and slow goes before never measured
    assert "the first token takes longer than 10 s" in found.ranked[0].reasons
    assert any("prompts of up to 3829 tokens, 6 at once" in sentence for sentence in found.otherwise)


def test_a_wish_that_is_met_needs_no_other_way() -> None:
    assert ask(2, 8_000, ttft_s=10.0).otherwise == ()


def test_a_wish_that_no_prompt_meets_asks_for_fewer_at_once() -> None:
    found = ask(6, 20_000, ttft_s=0.5)
    assert any("fewer at once" in sentence for sentence in found.otherwise)


def test_a_prompt_that_is_read_for_minutes_is_better_asked_at_night_or_elsewhere() -> None:
    (sentence,) = ask(2, 10_000, 600_000).otherwise
    assert sentence.startswith("a prompt of 600000 tokens is read for 599 s")
    assert "at night" in sentence
    assert "elsewhere" in sentence


def test_what_no_profile_serves_is_to_be_retrieved_in_parts() -> None:
    found = ask(1, 2_000_000)
    assert not any(each.serves_longest or each.change for each in found.ranked)
    assert found.otherwise[0].startswith("no profile serves 2002048 tokens: retrieve the parts that matter")


def test_turns_that_would_read_all_the_time_are_said_to() -> None:
    found = ask(3, 200_000, turns_per_hour=10)
    assert found.ranked[0].reading_pct == pytest.approx(100 * 30 * 138.3711 / 3600, rel=1e-4)
    assert any(sentence.startswith("reading the prompts alone takes 115 %") for sentence in found.otherwise)
    assert not any("reading" in sentence for sentence in ask(3, 200_000, turns_per_hour=1).otherwise)


def test_a_pool_that_is_not_known_is_not_taken_for_room() -> None:
    diagnostic = judged(ask(1, 1000), "diagnostic-fp8")
    assert diagnostic.pool_used_pct is None
    assert "its KV pool is not known" in diagnostic.reasons
    assert ask(1, 1000).ranked[-1].profile in {"diagnostic-fp8", "concurrent-200k"}


def test_a_session_that_is_more_than_the_whole_pool_is_not_served() -> None:
    small = Candidate(lane(pool=100_000), 64)
    (only,) = advise(Wanted(1, 50_000, 150_000, 0), (small,)).ranked
    assert not only.serves_longest
    assert "150000 tokens are more than its whole pool of 100000" in only.reasons


def test_a_time_that_nobody_measured_lies_between_fewer_and_more_at_once() -> None:
    assert time_to_first(lane(), 2048, 3) == Seconds(1.11, 1.38)
    assert time_to_first(lane(), 2048, 4) == Seconds(1.38, 1.38)
    assert time_to_first(lane(), 100_000, 6).high is None
    assert time_to_first(lane(), 2048, 16) == Seconds(6.06, None)
    assert time_to_first(lane(sweep=MATRIX), 2048, 1) == Seconds(1.20, 1.20)
    assert time_to_first(lane(sweep=None), 2048, 1) == Seconds(None, None)
    assert time_to_first(lane(), 1_048_577, 1) == Seconds(None, None)


@pytest.mark.parametrize("typical", [1_000, 100_000, 800_000])
def test_more_sessions_never_wait_less_anywhere(typical: int) -> None:
    waiting: dict[str, int] = {}
    for sessions in (1, 2, 4, 8, 16, 32):
        for each in ask(sessions, typical).ranked:
            assert each.waiting >= waiting.get(each.profile, 0)
            waiting[each.profile] = each.waiting
