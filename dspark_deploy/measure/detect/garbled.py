"""Text that no language has: bytes read in the wrong encoding, control characters, words thrown together."""

from __future__ import annotations

import contextlib
import re

from dspark_deploy.measure.detect.sample import Alarm, Sample, excerpt

_NEVER = re.compile(
    r"[\ufffd\ue000-\uf8ff\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]|锟斤拷|烫烫烫|\u200b{3,}"
)
_FOREIGN = re.compile(r"[^\x00-\x7f]{2,}")
_TWO_BYTES = frozenset("ÂÃÐÑ")  # with these, two characters are enough: `É”` also decodes, and is good French
_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")
# The commonest words of English: about four in ten of any plain text are among them.
_COMMON_TEXT = """
the of and to a in is that it for as with on be this are by an or from at not can have has was were which but its
you your they their one two when if will more than into so each then all may also how what only most between there
we he she his her i my do does did would should could no out up about over other some such these those who been had
where while because before after through both any many much very same first last use used
"""
_COMMON = frozenset(_COMMON_TEXT.split())
_SENTENCE_WORDS = 12  # a line of so many words is taken for prose
_ENOUGH_WORDS = 18
_LEAST_COMMON = 0.12
_LEAST_LETTERS = 0.45  # letters and blanks, of the characters of prose
_ENOUGH = 60  # characters that a share can be told from


def detect_garbled(sample: Sample) -> Alarm | None:
    """An alarm where characters or words are nobody's."""
    if found := _NEVER.search(sample.answer):
        return Alarm("garbled", excerpt(sample.answer, found.start()))
    for found in _FOREIGN.finditer(sample.answer):
        if meant := _misread(found[0]):
            return Alarm("garbled", f"{meant!r} read as {excerpt(sample.answer, found.start())}")
    if sample.form == "code" or sample.language != "english":
        return None
    text = sample.prose
    letters = sum(character.isalpha() or character.isspace() for character in text)
    if len(text) > _ENOUGH and letters / len(text) < _LEAST_LETTERS and not re.search(r"\d", text):
        return Alarm("garbled", excerpt(text, 30))
    return _salad(text)


def _misread(run: str) -> str:
    """What UTF-8 text a run of characters is, where it is one that was read as Windows' or Latin code page."""
    for start in range(len(run) - 1):
        for length in (4, 3, 2):
            piece = run[start : start + length]
            for page in ("cp1252", "latin-1"):
                with contextlib.suppress(UnicodeError):
                    meant = piece.encode(page).decode()
                    if len(meant) == 1 and (length > 2 or piece[0] in _TWO_BYTES):  # noqa: PLR2004
                        return meant
    return ""


def _salad(text: str) -> Alarm | None:
    """Lines as long as sentences, without the words that hold sentences together."""
    lines = [words for line in text.splitlines() if len(words := _WORD.findall(line)) >= _SENTENCE_WORDS]
    words = [word.lower() for line in lines for word in line]
    if len(words) >= _ENOUGH_WORDS and sum(word in _COMMON for word in words) / len(words) < _LEAST_COMMON:
        return Alarm("garbled", " ".join(words[:12]))
    return None
