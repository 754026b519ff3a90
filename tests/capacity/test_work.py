"""Sessions and their tokens, from text."""

from __future__ import annotations

import pytest

from dspark_deploy.capacity.work import Group, Work, parse_count, parse_mix, together
from dspark_deploy.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "count"), [("125272", 125_272), ("50k", 50_000), ("1M", 1_000_000), ("1.5m", 1_500_000), ("1_000", 1000)]
)
def test_a_count_may_be_short(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "0", "-1", "k", "1.5", "1.0001k", "50 k", "ten", "1e6", "0x10"])
def test_what_is_no_number_of_tokens_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a number of tokens"):
        parse_count(text)


def test_nothing_may_be_a_count_where_that_is_allowed() -> None:
    assert parse_count("0", least=0) == 0


def test_a_mix_is_sessions_by_tokens() -> None:
    mix = parse_mix("6x50k, 1x900k")
    assert mix == Work((Group(6, 50_000), Group(1, 900_000)))
    assert (mix.sessions, mix.live_tokens, mix.longest) == (7, 1_200_000, Group(1, 900_000))


def test_groups_of_one_size_are_one() -> None:
    assert parse_mix("2x10,3x10") == Work((Group(5, 10),))
    assert together([Group(1, 5, 2), Group(1, 5)]) == Work((Group(1, 5, 2), Group(1, 5)))


def test_answers_come_on_top() -> None:
    assert parse_mix("2x10", 5).live_tokens == 30
    assert parse_mix("2x10", 5).prompt_tokens == 20


@pytest.mark.parametrize("text", ["", "6", "x50k", "6x", "0x50k", "6x50k,", "6y50k", "-1x5"])
def test_a_mix_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_mix(text)
