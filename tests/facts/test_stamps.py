"""The engine's time stamps."""

from __future__ import annotations

import pytest

from dspark_deploy.facts.stamps import nanoseconds, rfc3339, shifted


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T01:00:00.000000007+01:00", 7),
        ("yesterday", 0),
        ("", 0),
    ],
)
def test_a_stamp_is_read_to_the_nanosecond(stamp: str, expected: int) -> None:
    assert nanoseconds(stamp) == expected


def test_a_stamp_is_written_to_the_microsecond_so_that_texts_sort_as_times_do() -> None:
    assert rfc3339(1_500_000_999) == "1970-01-01T00:00:01.500000Z"


def test_a_shift_goes_both_ways_and_leaves_what_is_no_stamp() -> None:
    assert shifted("2026-09-01T10:00:00.000000001Z", 1.25) == "2026-09-01T10:00:01.250000Z"
    assert shifted("2026-09-01T00:00:00Z", -1) == "2026-08-31T23:59:59.000000Z"
    assert shifted("?", 5) == "?"
