"""The estimate of a text's tokens, against a slow and literal second reading of its rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspark_deploy.capacity.textsize import count_characters, estimate_tokens, is_binary, whole

CJK = ((0x2F00, 0x9FFF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF), (0xFF00, 0xFFFF), (0x20000, 0x3FFFF))


def literal(text: str) -> tuple[int, int]:
    """All characters and the CJK ones, one by one."""
    return len(text), sum(any(low <= ord(character) <= high for low, high in CJK) for character in text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("four", 1),
        ("four more", 3),
        ("你好", 2),
        ("你好，世界", 5),  # noqa: RUF001  the comma that is written there
        ("漢字 and kana カナ", 7),  # 4 CJK characters, 10 others
        ("한글", 2),
        ("naïve café", 3),
        ("\U00020000\U0001f600", 2),  # a rare ideograph, and a face, which is none
    ],
)
def test_a_cjk_character_is_a_token_and_four_others_are_one(text: str, tokens: int) -> None:
    assert whole(estimate_tokens(text.encode())) == tokens


def test_another_number_of_characters_a_token_may_be_given() -> None:
    assert estimate_tokens(b"12345678", 2.0) == 4
    assert estimate_tokens("你2345678".encode(), 2.0) == 1 + 3.5


def test_what_is_not_utf8_is_a_character_a_byte() -> None:
    assert count_characters("déjà vu".encode("latin-1")) == (7, 0)
    assert estimate_tokens("déjà vue".encode("latin-1")) == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_with_its_mark_is_text(encoding: str) -> None:
    data = "\ufeffab 你".encode("utf-16-le" if encoding == "utf-16" else encoding)
    assert not is_binary(data)
    assert count_characters(data) == (4, 1)


def test_a_zero_byte_makes_it_binary() -> None:
    assert is_binary(b"MZ\0\0")
    assert not is_binary(b"text")
    assert not is_binary(b"")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_counted_as_its_characters_are(text: str) -> None:
    total, cjk = literal(text)
    assert count_characters(text.encode()) == (total, cjk)
    assert estimate_tokens(text.encode()) == cjk + (total - cjk) / 4


@given(st.binary())
def test_any_bytes_are_counted(data: bytes) -> None:
    characters, cjk = count_characters(data)
    assert 0 <= cjk <= characters <= len(data)


@given(st.text(), st.text())
def test_a_longer_text_is_never_fewer_tokens(one: str, other: str) -> None:
    first, both = (text.encode("utf-8", "ignore") for text in (one, one + other))
    assert estimate_tokens(first) <= estimate_tokens(both)
