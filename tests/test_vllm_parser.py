"""The parser that other tests lean on, held against the verdicts that vLLM 0.32.0 itself gave."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vllm_parser import Rejected, check, parse

VERDICTS = Path(__file__).parent / "data" / "vllm-parser-verdicts-0.32.0.tsv"


def cases() -> list[tuple[list[str], str, str]]:
    """Each line's words, verdict, and the value of its first flag."""
    lines = [line.split("\t") for line in VERDICTS.read_text().splitlines()[1:]]
    full = next(words for words, *_ in lines if words.startswith("FULL: ")).removeprefix("FULL: ")
    found = []
    for words, verdict, value in lines:
        text = words.removeprefix("FULL: ").replace("FULL with", full)
        found.append((_split(text), verdict, value))
    return found


def _split(text: str) -> list[str]:
    """The words of a line; what is no JSON holds a blank."""
    words = text.split(" ")
    if "{not" in words:
        at = words.index("{not")
        return [*words[:at], " ".join(words[at:])]
    return words


@pytest.mark.parametrize(
    ("words", "verdict", "value"), [pytest.param(*case, id=" ".join(case[0])[:60]) for case in cases()]
)
def test_the_parser_judges_as_vllm_did(words: list[str], verdict: str, value: str) -> None:
    if verdict != "ACCEPTED":
        with pytest.raises(Rejected):
            check(parse(words))
        return
    parsed = parse(words)
    check(parsed)
    if not value.startswith("ReasoningConfig("):  # a class of vLLM's own, which is plain data here
        assert repr(parsed[words[0].removeprefix("--").replace("-", "_")]) == value


def test_there_are_verdicts_of_both_kinds() -> None:
    assert {verdict for _, verdict, _ in cases()} == {"ACCEPTED", "REJECTED", "PARSED,validate_failed"}
