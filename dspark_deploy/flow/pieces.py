"""A text in pieces that no character or line is cut by, so that memory stays small whatever its length."""

from __future__ import annotations

from collections.abc import Callable, Iterator

PIECE = 2**20  # bytes
_HIGH, _LEAD = 0x80, 0xC0  # from here on: part of a character of several bytes; the first of its bytes


def in_pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """What `read` gives until it gives nothing, in pieces of at most twice PIECE, cut at line ends where it has any."""
    rest = b""
    while data := read(PIECE):
        data = rest + data
        cut = data.rfind(b"\n") + 1 or _whole_characters(data)
        rest = data[cut:]
        if cut:
            yield data[:cut]
    if rest:
        yield rest


def _whole_characters(data: bytes) -> int:
    """The length of `data` without a last character that is cut."""
    for back in range(1, min(len(data), 3) + 1):
        byte = data[-back]
        if byte < _HIGH:
            break
        if byte >= _LEAD:
            return len(data) - back
    return len(data)
