"""The signatures as data, and the list of failures that they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from dspark_deploy.boot.phases import ABOUT, MARKERS, Phase
from dspark_deploy.boot.reader import SHARED
from dspark_deploy.boot.rules import Rules
from dspark_deploy.boot.signatures import PhaseName, Signature, load_signatures, phase_named
from dspark_deploy.errors import ConfigError

FAILURES = Path(__file__).parents[2] / "docs" / "failures.md"
ROW = re.compile(
    r"^\| (F\d+) \| (?P<seen>.+?) \| (?P<cause>.+?) \| (?P<told>.+?) \| (?P<remedy>.+?) \| (?P<source>.+?) \|$"
)
# `log` says that a line tells it; these are told by lines of another failure, or by two lines together.
ROWS = [match for line in FAILURES.read_text(encoding="utf-8").splitlines() if (match := ROW.match(line))]
HEAD = """signatures:
- id: one
  severity: fatal
  means: m
  remedy: r
"""


def test_every_failure_stands_once_in_the_list() -> None:
    assert [match[1] for match in ROWS] == [f"F{number:02}" for number in range(1, 127)]


def test_every_signature_names_a_failure_of_the_list(rules: Rules) -> None:
    known = {match[1] for match in ROWS}
    for signature in rules.signatures.values():
        assert {signature.failure, *signature.also} - {None} <= known, signature.id


def test_what_the_list_calls_told_by_the_log_has_a_signature_and_nothing_else_has(rules: Rules) -> None:
    told = {match[1] for match in ROWS if "log" in match["told"].split(", ")}
    assert told == {each.failure for each in rules.signatures.values() if each.failure}


def test_a_fatal_or_costly_signature_says_which_failure_it_is(rules: Rules) -> None:
    nameless = [each.id for each in rules.signatures.values() if each.failure is None and each.severity != "harmless"]
    assert nameless == ["core-did-not-start", "worker-did-not-start", "engine-died"]


def test_braces_in_means_and_remedy_are_names_that_the_pattern_gives(rules: Rules) -> None:
    for signature in rules.signatures.values():
        wanted = set(re.findall(r"\{(\w+)", signature.means + signature.remedy))
        given = set(signature.regex.groupindex) if signature.regex else set()
        assert wanted <= given | {"fits"}, signature.id
        assert all(signature.explained({}))


def test_no_literal_is_longer_than_what_two_pieces_of_a_line_share(rules: Rules) -> None:
    assert rules.matcher.longest < SHARED


def test_a_literal_reads_the_same_in_dockers_own_files(rules: Rules) -> None:
    assert [literal for literal in rules.literals if set(literal) & set('"<>&\\\n\r')] == []


def test_every_phase_has_words_a_name_for_data_files_and_a_line_that_opens_it() -> None:
    assert set(ABOUT) == set(Phase)
    assert {phase_named(name) for name in get_args(PhaseName)} == set(Phase)
    assert {phase for _, phase in MARKERS} == set(Phase)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "needs either text or relation"),
        ("  text: [abcd]\n  relation: two-masters\n", "needs either text or relation"),
        ("  text: ['(']\n", "`signatures[0].text[0]`"),
        ("  text: ['a\"bcd']\n", "`signatures[0].text[0]`"),
        ("  text: [abcd]\n  pattern: '('\n", "no regular expression"),
        ("  text: [abcd]\n  followed_by: {phase: ready}\n", "severity and followed_by don't fit"),
        ("  text: [abcd]\n  since: ready\n  until: kv\n", "`since` comes after `until`"),
        ("  text: [abcd]\n  phase: ready\n", "`signatures[0].phase` is not a known key"),
        ("  text: [abcd]\n- {id: one, severity: fatal, means: m, remedy: r, text: [abcd]}\n", "`one` stands twice"),
    ],
)
def test_a_mistake_in_the_file_is_named(lines: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "signatures.yaml"
    path.write_text(HEAD + lines, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_signatures(path)
    assert message in caught.value.message
    assert str(path) in caught.value.message


def test_what_fits_is_worked_out_from_the_line() -> None:
    signature = Signature.model_validate(
        {"id": "x", "text": ("abcd",), "severity": "fatal", "means": "{free}", "remedy": "{fits} or {missing}"}
    )
    assert signature.explained({"free": "104.9", "total": "121.63"}) == ("104.9", "0.86 or ?")
    assert signature.explained({"free": "1", "total": "0"}) == ("1", "? or ?")
