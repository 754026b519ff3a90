"""The detectors' rates on the labelled set, and single answers that were met before."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from dspark_deploy.measure.detect.every import DETECTORS, detect
from dspark_deploy.measure.detect.sample import Kind, Sample
from tests.measure.labelled import EACH, Half, faulty, sane

HALVES: tuple[Half, Half] = ("tuning", "held-out")


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("kind", DETECTORS)
def test_at_least_19_of_20_planted_faults_are_found(half: Half, kind: Kind) -> None:
    planted = faulty(half, kind)
    found = sum(DETECTORS[kind](each) is not None for each in planted)
    print(f"{half}, {kind}: {found} of {len(planted)} found")  # noqa: T201  a measured rate
    assert len(planted) == EACH >= 20
    assert found / len(planted) >= 0.95


@pytest.mark.parametrize("half", HALVES)
def test_two_hundred_sane_answers_raise_no_alarm(half: Half) -> None:
    answers = sane(half)
    alarms = {each.answer[:60]: found for each in answers if (found := detect(each))}
    print(f"{half}: {len(alarms)} of {len(answers)} sane answers raise an alarm")  # noqa: T201  a measured rate
    assert len(answers) == len({each.answer for each in answers}) == 200
    assert alarms == {}


def test_the_halves_share_no_passage_and_no_fault() -> None:
    first, second = (
        {line for each in sane(half) for line in each.answer.splitlines() if len(line) > 30} for half in HALVES
    )
    assert first.isdisjoint(second)


def test_python_s_own_documentation_raises_hardly_any_alarm() -> None:
    """Text that nobody wrote for this: some of it ends in a grammar or in a table, which is no end of an answer."""
    passages = []
    for text in topics.values():
        long = [each for each in re.split(r"\n\s*\n", text) if len(each) > 200]
        passages += ["\n\n".join(long[at : at + 2]) for at in range(0, len(long), 2)]
    alarms = Counter(alarm.kind for each in passages for alarm in detect(Sample(each)))
    print(f"{len(passages)} passages: {dict(alarms)}")  # noqa: T201  a measured rate
    assert len(passages) > 200
    assert alarms.total() <= 0.02 * len(passages)


def test_python_s_own_code_raises_hardly_any_alarm() -> None:
    code = []
    for path in sorted(Path(inspect.__file__).parent.glob("[a-d]*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.split("\n")
        functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
        segments = ("\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in functions)
        code += [each for each in segments if 200 < len(each) < 2500]
    alarms = Counter(alarm.kind for each in code for alarm in detect(Sample(f"```python\n{each}\n```", form="code")))
    print(f"{len(code)} functions: {dict(alarms)}")  # noqa: T201  a measured rate
    assert len(code) > 50
    assert alarms.total() <= 0.02 * len(code)


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("42", set()),
        ("The the the the the the the", {"loop", "truncated"}),
        ("", {"empty"}),
        ("<think> 17 + 25 </think> 42", {"markup"}),
        ("\ufffd\u4e00 ¿ 0x1f", {"script", "garbled"}),
        ("The sum is 42\uff0c因为", {"script"}),
        ("Yes, and the reason for that is", {"truncated"}),
    ],
)
def test_answers_that_were_met_before(answer: str, kinds: set[Kind]) -> None:
    assert {alarm.kind for alarm in detect(Sample(answer))} == kinds


def test_a_code_of_another_request_is_told_from_one_of_none() -> None:
    sample = Sample("REF-AAAAAA: here you are, and REF-BBBBBB too.", code="REF-AAAAAA", others=("REF-BBBBBB",))
    (alarm,) = detect(sample)
    assert "of another request" in alarm.evidence
    (alarm,) = detect(Sample("REF-AAAAAA: and REF-CCCCCC.", code="REF-AAAAAA"))
    assert "of no request" in alarm.evidence


def test_an_answer_that_ran_into_its_limit_is_truncated() -> None:
    assert [alarm.kind for alarm in detect(Sample("A whole sentence.", finish_reason="length"))] == ["truncated"]
