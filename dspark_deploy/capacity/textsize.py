"""How many tokens a text is likely to be, without a tokenizer: a CJK character one, else four characters one.

Bytes are counted by passes of C over the whole text: a loop over characters would take far longer than reading it.
"""

from __future__ import annotations

import math
import re

CHARS_PER_TOKEN = 4.0
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ASCII = bytes(range(0x80))
# The upper byte of every code point that counts as CJK: radicals, punctuation, kana and ideographs (2F00 to 9FFF),
# Hangul (AC00 to D7FF), compatibility ideographs (F900 to FAFF), full- and half-width forms (FF00 to FFFF).
_CJK_UPPER = frozenset({*range(0x2F, 0xA0), *range(0xAC, 0xD8), 0xF9, 0xFA, 0xFF})
_NOT_CJK_UPPER = bytes(byte for byte in range(256) if byte not in _CJK_UPPER)
_CJK_BEYOND = re.compile("[\U00020000-\U0003ffff]")  # rarer ideographs, two units of UTF-16 each


def is_binary(data: bytes) -> bool:
    """Whether these bytes are no text: a zero byte, unless they begin as UTF-16 does."""
    return b"\0" in data and not data.startswith(_UTF16_MARKS)


def estimate_tokens(data: bytes, chars_per_token: float = CHARS_PER_TOKEN) -> float:
    """Tokens of a text, not rounded: UTF-8, UTF-16 with its mark, or else a character for each byte."""
    if data.isascii():
        return len(data) / chars_per_token
    characters, cjk = count_characters(data)
    return cjk + (characters - cjk) / chars_per_token


def count_characters(data: bytes) -> tuple[int, int]:
    """All characters of a text, and the CJK ones among them."""
    if data.startswith(_UTF16_MARKS):
        data = data.decode("utf-16", "replace").encode()
    high = data.translate(None, _ASCII)  # a source file's comments may be Chinese, its code is not
    try:
        text = high.decode()
    except UnicodeDecodeError:
        return len(data), 0
    units = text.encode("utf-16-be")[::2]  # the upper byte of each
    cjk = len(units.translate(None, _NOT_CJK_UPPER))
    if len(units) != len(text):
        cjk += len(_CJK_BEYOND.findall(text))
    return len(data) - len(high) + len(text), cjk


def whole(tokens: float) -> int:
    """A number of tokens to show: rounded up."""
    return math.ceil(tokens)
