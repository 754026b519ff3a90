"""Another script than the one that was asked for: CJK in an English answer, English in a Chinese one."""

from __future__ import annotations

import re

from dspark_deploy.measure.detect.sample import Alarm, Sample, excerpt

HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK = re.compile(rf"[{HAN}\u3040-\u30ff\uac00-\ud7af\u3001\u3002\uff0c\uff01\uff1f\uff1a\uff1b]")
_OTHER = re.compile(r"[\u0400-\u052f\u0590-\u05ff\u0600-\u06ff\u0900-\u097f\u0e00-\u0e7f]{2,}")
_NOT_CHINESE = re.compile(
    r"[\u3040-\u309f\u30a0-\u30fa\uac00-\ud7af]|[\u0400-\u052f\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f]{2,}"
)
_HAN = re.compile(rf"[{HAN}]")
_LATIN_WORDS = re.compile(r"(?:[A-Za-z][A-Za-z'’-]*[ ,;:.]+){7,}[A-Za-z]+")
_FEW_QUOTED = 12  # characters: a word or a name that is spoken of
_LATIN_A_HAN = 4.0  # Latin letters that say as much as one Han character
_LEAST_HAN = 0.35  # of a Chinese answer


def detect_script(sample: Sample) -> Alarm | None:
    """An alarm where the answer leaves its script. A prompt that holds the other script itself excuses nothing."""
    return _chinese(sample) if sample.language == "chinese" else _english(sample)


def _english(sample: Sample) -> Alarm | None:
    text = sample.unquoted
    for pattern in (_CJK, _OTHER):
        if found := pattern.search(text):
            return Alarm("script", excerpt(text, found.start()))
    everywhere = _CJK.findall(sample.answer)
    if len(everywhere) > _FEW_QUOTED:
        return Alarm("script", "".join(everywhere[:_FEW_QUOTED]) + f" … {len(everywhere)} characters in all")
    return None


def _chinese(sample: Sample) -> Alarm | None:
    text = sample.unquoted.replace(sample.code, " ") if sample.code else sample.unquoted
    for pattern in (_NOT_CHINESE, _LATIN_WORDS):
        if found := pattern.search(text):
            return Alarm("script", excerpt(text, found.start(), 40))
    han, latin = len(_HAN.findall(text)), len(re.findall(r"[A-Za-z]", text)) / _LATIN_A_HAN
    if han + latin and han / (han + latin) < _LEAST_HAN:
        return Alarm("script", f"{han / (han + latin):.0%} Chinese: {excerpt(text, 30)}")
    return None
