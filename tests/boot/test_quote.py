"""What may be shown of a log line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspark_deploy.boot.quote import LIMIT, quote

KEY = "Zm9vYmFyLXNlY3JldC0xMjM0"


@pytest.mark.parametrize(
    "line",
    [
        f"non-default args: {{'model': 'm', 'api_key': ['{KEY}', '{KEY}'], 'port': 8888}}",
        f"non-default args: {{'api_key': '{KEY}'}}",
        f"non-default args: {{'api_key': ['{KEY}",
        f"VLLM_API_KEY={KEY} DSPARK_API_KEYS={KEY}",
        f"HF_TOKEN={KEY}",
        f"Authorization: Bearer {KEY}",
        f"token hf_{KEY}",
        f"Incorrect API key provided: sk-{KEY}",
        f'{{"api_keys": ["{KEY}"]}}',
    ],
)
def test_a_secret_is_masked(line: str) -> None:
    shown = quote(line)
    assert KEY not in shown
    assert "***" in shown


@given(st.integers(0, 600), st.integers(0, 900))
def test_no_cut_uncovers_half_a_secret(before: int, around: int) -> None:
    line = f"{'a' * before} 'api_key': ['{KEY}'] {'b' * 900}"
    assert KEY[4:] not in quote(line, around)


def test_a_long_line_is_shown_around_what_matters() -> None:
    line = "a" * 5000 + "THE CAUSE" + "b" * 5000
    shown = quote(line, 5000)
    assert "THE CAUSE" in shown
    assert shown.startswith("...")
    assert shown.endswith("...")
    assert len(shown) <= LIMIT + 6


@given(st.text(max_size=2000), st.integers(0, 2000))
def test_whatever_stands_in_the_line_one_printable_line_comes_out(text: str, around: int) -> None:
    shown = quote(text, around)
    assert len(shown) <= LIMIT + 6
    assert all(char.isprintable() for char in shown)
