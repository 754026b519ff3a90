"""The prompt inside the answer: an answer uses the question's words, never a dozen of them in the same order."""

from __future__ import annotations

import re

from dspark_deploy.measure.detect.sample import Alarm, Sample

_WORD = re.compile(r"[a-z0-9']+|[\u4e00-\u9fff]")
_RUN = {"english": 10, "chinese": 16}  # words in a row; Chinese: characters


def detect_prompt(sample: Sample) -> Alarm | None:
    """An alarm where a long run of the prompt's words stands in the answer, or all of a short prompt."""
    asked = _words(sample.prompt, sample.code)
    said = _words(sample.answer, sample.code)
    run = min(_RUN[sample.language], len(asked))
    if run < _RUN[sample.language] // 2:
        return None
    known = {tuple(asked[at : at + run]) for at in range(len(asked) - run + 1)}
    for at in range(len(said) - run + 1):
        if tuple(said[at : at + run]) in known:
            return Alarm("prompt", " ".join(said[at : at + run]))
    return None


def _words(text: str, code: str) -> list[str]:
    return _WORD.findall((text.replace(code, " ") if code else text).lower())
