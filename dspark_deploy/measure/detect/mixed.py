"""Another request's answer, or a piece of it: told by the reference code that each prompt carries."""

from __future__ import annotations

import re

from dspark_deploy.measure.detect.sample import Alarm, Sample

_CODE = re.compile(r"REF-[0-9A-F]{6}", re.IGNORECASE)


def reference_code(number: int) -> str:
    """A code that is like no word: the same for the same number, so that a repeated prompt stays the same."""
    return f"REF-{(number * 0x9E3779 + 0x5A17C3) & 0xFFFFFF:06X}"


def detect_mixed(sample: Sample) -> Alarm | None:
    """An alarm where the answer has another code than its own, or has not its own."""
    if not sample.code:
        return None
    said = {each.upper() for each in _CODE.findall(sample.answer)}
    if foreign := sorted(said - {sample.code.upper()}):
        whose = "of another request" if foreign[0] in {each.upper() for each in sample.others} else "of no request"
        return Alarm("mixed", f"{foreign[0]} {whose} in the answer to {sample.code}")
    if sample.code.upper() not in said and any(character.isalnum() for character in sample.answer):
        return Alarm("mixed", f"the answer does not carry its own code {sample.code}: {sample.answer[:60]!r}")
    return None
