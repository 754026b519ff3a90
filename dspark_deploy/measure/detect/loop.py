"""Repetition: the same piece again and again, at once or with something in between."""

from __future__ import annotations

import re
import zlib
from collections import Counter

from dspark_deploy.measure.detect.sample import Alarm, Form, Sample

_RULERS = re.compile(r"[-=_*#~.·•─═│|+>\s]+")  # lines, tables and leaders are drawn with these
_SAYS_SOMETHING = re.compile(r"[^\W\d_]|[!?！？。，]")
_NUMBER = re.compile(r"\d+")
_ENDS = re.compile(r"[.!?。！？\n]+")
_GRAMS = (8, 24)  # characters by which a place is recognised: few for short pieces, many for pieces that hold twins
# Up to this length of the piece in characters: so often in a row is a loop. Code repeats itself more than prose.
_OFTEN: dict[Form, tuple[tuple[int, int], ...]] = {
    "prose": ((3, 10), (7, 7), (24, 5), (59, 4), (400, 3)),
    "code": ((24, 16), (59, 10), (400, 6)),
}
_SHORTEST: dict[Form, int] = {"prose": 1, "code": 8}
_SAME_SENTENCES: dict[Form, int] = {"prose": 4, "code": 12}
_COUNTED_SENTENCES = 5  # that differ in their numbers alone
_SENTENCE = 4  # words; of Chinese twice as many characters
_LONG = 500  # characters that a compression can be judged from
_LEAST_RATIO: dict[Form, float] = {"prose": 0.22, "code": 0.10}  # compressed to plain; English has about 0.5


def detect_loop(sample: Sample) -> Alarm | None:
    """An alarm where the answer goes in a circle."""
    text = _RULERS.sub(" ", sample.answer).strip().lower()
    rows = (_in_a_row(sample, text, gram) for gram in _GRAMS)
    return next(filter(None, rows), None) or _sentences(sample) or _compressed(sample, text)


def _in_a_row(sample: Sample, text: str, length: int) -> Alarm | None:
    """A piece that follows itself: places whose last twin lies equally far back, one after the other."""
    last: dict[str, int] = {}
    distance = begin = 0
    for at in range(len(text) - length + 1):
        gram = text[at : at + length]
        back = at - last.get(gram, at)
        last[gram] = at
        if back == 0 or back != distance:
            distance, begin = back, at
            continue
        times = (at + length + 1 - begin) // distance + 1  # the last piece may lack its blank
        if times >= _limit(sample.form, distance) and _SAYS_SOMETHING.search(text[at : at + distance]):
            return Alarm("loop", f"{times} times in a row: {text[at : at + distance].strip()[:80]}")
    return None


def _limit(form: Form, length: int) -> float:
    if length < _SHORTEST[form]:
        return float("inf")
    return next((times for longest, times in _OFTEN[form] if length <= longest), float("inf"))


def _sentences(sample: Sample) -> Alarm | None:
    sentences = [" ".join(each.split()).lower() for each in _ENDS.split(sample.answer)]
    sentences = [each for each in sentences if len(each.split()) >= _SENTENCE or _is_long_chinese(each)]
    for sentence, times in Counter(sentences).most_common(1):
        if times >= _SAME_SENTENCES[sample.form]:
            return Alarm("loop", f"{times} times: {sentence[:80]}")
    if sample.form == "code":
        return None
    counted = Counter(_NUMBER.sub("0", each) for each in sentences)
    for sentence, times in counted.most_common(1):
        words = len(re.findall(r"[a-z]{2,}", sentence))
        long = words > _SENTENCE or _is_long_chinese(sentence)
        if times >= _COUNTED_SENTENCES and long and 2 * times >= len(sentences):
            return Alarm("loop", f"{times} times, counting: {sentence[:80]}")
    return None


def _compressed(sample: Sample, text: str) -> Alarm | None:
    if len(text) < _LONG:
        return None
    plain = text.encode()
    ratio = len(zlib.compress(plain, 9)) / len(plain)
    if ratio >= _LEAST_RATIO[sample.form]:
        return None
    return Alarm("loop", f"compresses to {ratio:.0%} of its length: {text[-80:]}")


def _is_long_chinese(text: str) -> bool:
    return len(re.findall(r"[\u4e00-\u9fff]", text)) >= 2 * _SENTENCE
