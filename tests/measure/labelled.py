"""The labelled set of the quality gate: hand-written answers, and faults planted into them.

Two halves that share nothing: detectors are made on `tuning`, rates are told from `held-out`. A half's answers are
composed of one to three of its passages, so that they have the lengths that the gate's prompts bring.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ruamel.yaml import YAML

from dspark_deploy.measure.detect.mixed import reference_code
from dspark_deploy.measure.detect.sample import Form, Kind, Language, Sample
from dspark_deploy.measure.prompts import Prompt, system_of, worded

FOLDER = Path(__file__).parent.parent / "data" / "gate"
Half = Literal["tuning", "held-out"]
SANE = {"english": 130, "code": 40, "chinese": 30}
EACH = 24  # faults of a kind


@dataclass(frozen=True)
class Passage:
    """One question with a sane answer."""

    question: str
    text: str


def passages(half: Half, name: str) -> list[Passage]:
    """A file's passages; a question stands in front of each."""
    found = []
    for block in (FOLDER / half / f"{name}.txt").read_text(encoding="utf-8").split("\n%%\n"):
        question, _, text = block.strip().partition("\n")
        found.append(Passage(question.removeprefix("? "), text))
    return found


def sane(half: Half) -> list[Sample]:
    """200 answers without a fault."""
    chance = random.Random(half)  # noqa: S311  not a secret
    made: list[Sample] = []
    for name, count in SANE.items():
        known = passages(half, name)
        for number in range(count):
            most = 1 if name == "code" else 3
            chosen = [known[number % len(known)], *chance.sample(known, chance.randint(0, most - 1))]
            made.append(_sample(list(dict.fromkeys(chosen)), name, len(made)))
    return made


def faulty(half: Half, kind: Kind) -> list[Sample]:
    """24 answers with one fault of that kind each."""
    chance = random.Random(f"{half} {kind}")  # noqa: S311  not a secret
    return list(_FAULTS[kind](half, chance))


def _sample(chosen: list[Passage], name: str, number: int) -> Sample:
    code = reference_code(number)
    language: Language = "chinese" if name == "chinese" else "english"
    form: Form = "code" if name == "code" else "prose"
    prompt = Prompt(" ".join(each.question for each in chosen), form, language)
    return Sample(
        answer=f"{code}\n\n" + "\n\n".join(each.text for each in chosen),
        prompt=f"{system_of(prompt)}\n{worded(prompt, code)}",
        language=language,
        form=form,
        code=code,
        others=tuple(reference_code(number + step) for step in range(1, 6)),
    )


def _material(half: Half, kind: Kind) -> list[Any]:
    loaded: dict[str, list[Any]] = YAML(typ="safe").load((FOLDER / half / "faults.yaml").read_text(encoding="utf-8"))
    return loaded[kind]


def _host(half: Half, chance: random.Random, name: str = "english") -> Sample:
    known = passages(half, name)
    return _sample(chance.sample(known, 1 if name == "code" else 2), name, chance.randrange(1000))


def _spoilt(sample: Sample, at: int, piece: str) -> Sample:
    return replace(sample, answer=sample.answer[:at] + piece + sample.answer[at:])


def _between_words(sample: Sample, chance: random.Random) -> int:
    """A place after the code, outside quotes and code."""
    blanks = [at for at, character in enumerate(sample.answer) if character == " " and at > len(sample.code) + 2]
    return chance.choice([at for at in blanks if sample.unquoted.count(sample.answer[at - 4 : at + 4])] or blanks)


def _inserted(kind: Kind) -> Any:
    def make(half: Half, chance: random.Random) -> Iterator[Sample]:
        for piece in _material(half, kind):
            chinese = piece.startswith("zh:")
            piece = piece.removeprefix("zh:")  # noqa: PLW2901  the mark is no part of it
            if piece.startswith("salad: "):
                base = _host(half, chance)
                yield replace(base, answer=f"{base.code}\n\n{piece.removeprefix('salad: ')}")
                continue
            base = _host(half, chance, "chinese" if chinese else "english")
            if kind == "markup" and piece == "</s>":
                yield replace(base, answer=base.answer + piece)
                continue
            middle = base.answer.find("。", len(base.code)) + 1 if chinese else _between_words(base, chance)
            yield _spoilt(base, middle, piece)

    return make


def _loops(half: Half, chance: random.Random) -> Iterator[Sample]:
    for piece, times in _material(half, "loop"):
        base = _host(half, chance, "chinese" if piece.startswith("zh:") else "english")
        circle = piece.removeprefix("zh:") * times
        if chance.random() < 0.5:
            yield replace(base, answer=base.answer + circle)
        else:
            yield _spoilt(base, base.answer.find("\n\n") + 2, circle.strip() + "\n\n")


def _leaks(half: Half, chance: random.Random) -> Iterator[Sample]:
    for number in range(EACH):
        base = _host(half, chance, ("english", "code", "chinese")[number % 3])
        lines = base.prompt.splitlines()
        leak = (lines[0], lines[1], base.prompt, " ".join(lines[0].split()[-18:]))[number % 4]
        yield replace(base, answer=f"{base.answer}\n\n{leak}" if number % 2 else f"{base.code}\n{leak}\n{base.answer}")


def _empties(half: Half, chance: random.Random) -> Iterator[Sample]:
    for number, nothing in enumerate(_material(half, "empty")):
        base = _host(half, chance)
        yield replace(base, answer=nothing if number % 2 else f"{base.code} {nothing}")


def _cuts(half: Half, chance: random.Random) -> Iterator[Sample]:
    for number in range(EACH):
        base = _host(half, chance, ("english", "english", "code", "chinese")[number % 4])
        if number % 6 == 5:
            yield replace(base, finish_reason="length")
            continue
        yield replace(base, answer=base.answer[: _cut(base, chance)])


def _cut(base: Sample, chance: random.Random) -> int:
    """A place inside a sentence of some length, or inside a block of code."""
    if base.form == "code":
        start, end = base.answer.index("```"), base.answer.rindex("```")
        return chance.randrange(start + (end - start) // 3, end - 2)
    least = 60 if base.language == "english" else 15
    places = []
    for at in range(len(base.answer)):
        line = base.answer[:at].splitlines()[-1:] or [""]
        if len(line[0]) > least and line[0][-1].isalpha() and line[0][0].isalpha() and base.answer[at].isalpha():
            places.append(at)
    return chance.choice(places)


def _mixes(half: Half, chance: random.Random) -> Iterator[Sample]:
    for number in range(EACH):
        base = _host(half, chance, ("english", "code", "chinese")[number % 3])
        other = chance.choice(base.others)
        without = base.answer.removeprefix(base.code)
        yield replace(
            base,
            answer=(
                other + without,
                f"{base.answer}\n\n{other} {without[:80]}.",
                without.strip(),
                base.answer.replace(base.code, f"{base.code} {other.lower()}"),
            )[number % 4],
        )


_FAULTS: dict[Kind, Any] = {
    "script": _inserted("script"),
    "garbled": _inserted("garbled"),
    "markup": _inserted("markup"),
    "loop": _loops,
    "prompt": _leaks,
    "empty": _empties,
    "truncated": _cuts,
    "mixed": _mixes,
}
