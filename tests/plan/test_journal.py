"""The pair's history out of two nodes' journals."""

from __future__ import annotations

from typing import Any

from dspark_deploy.plan.journal import (
    AGREED,
    DIFFERED,
    Entry,
    Journal,
    Mark,
    before,
    compared,
    merged,
    parse_journal,
    ranks_word,
    unconfirmed,
)


def entry(run: str, release: str = "a", outcome: str = "serving", **changes: Any) -> Entry:
    values = {"run": run, "at": f"2026-09-01T10:{run}:00Z", "who": "me@laptop", "command": "up", **changes}
    return Entry(**values, release=release, outcome=outcome)


def journal(*entries: Entry, **marks: Mark) -> Journal:
    return Journal(entries, marks, {})


def test_a_run_that_one_node_missed_is_told_by_the_other() -> None:
    head, worker = journal(entry("01"), entry("03")), journal(entry("01"), entry("02"))
    assert [each.run for each in merged((head, worker))] == ["01", "02", "03"]


def test_the_release_before_is_the_last_other_one_that_served() -> None:
    history = (entry("01", "a"), entry("02", "b"), entry("03", "c", outcome="launch-failed"), entry("04", "b"))
    assert before(history, "b") == "a"
    assert before(history, None) == "b"
    assert before(history[:1], "a") is None


def test_an_entry_goes_through_json_and_back() -> None:
    known = entry("01", seconds={"check": 0.2}, message="m")
    document = {"history": [known.document()], "marks": {"booting": Mark("t", "w").document()}, "releases": {}}
    parsed = parse_journal(document)
    assert parsed.history[0].document() == known.document()
    assert parsed.marks == {"booting": Mark("t", "w")}


def test_what_another_version_wrote_is_passed_over() -> None:
    document: dict[str, Any] = {
        "history": [{"run": "1"}, {**entry("02").document(), "new": 1}],
        "marks": {"x": 3, "booting": {"since": "t"}},
        "releases": {},
    }
    parsed = parse_journal(document)
    assert [each.run for each in parsed.history] == ["02"]
    assert parsed.marks == {}


def test_tombstones_name_their_nodes() -> None:
    told = journal(**{"unconfirmed-worker": Mark("t", "w", reason="no route"), "booting": Mark("t", "w")})
    assert unconfirmed((told, journal())) == {"worker": Mark("t", "w", reason="no route")}


def test_the_phases_of_a_boot_go_through_json_and_another_versions_are_passed_over() -> None:
    known = entry("01", phases={"head": {"weights": 141.7}}, kv_cache_tokens=2493464)
    strange = [
        {**entry(f"0{number}").document(), "phases": each} for number, each in ((2, [1]), (3, {"head": {"a": "b"}}))
    ]
    parsed = parse_journal({"history": [known.document(), *strange], "marks": {}, "releases": {}})
    assert [each.phases for each in parsed.history] == [{"head": {"weights": 141.7}}, {}, {}]


def test_an_entry_of_an_older_version_has_no_phases() -> None:
    old = {name: value for name, value in entry("01").document().items() if name != "phases"}
    assert parse_journal({"history": [old], "marks": {}, "releases": {}}).history[0].phases == {}


def test_a_comparison_of_ranks_speaks_of_those_very_ranks_alone() -> None:
    now = ranks_word(("a" * 64, "2026-09-01T10:00:00Z"), ("b" * 64, "2026-09-01T09:59:00Z"))
    restarted = ranks_word(("a" * 64, "2026-09-01T12:00:00Z"), ("b" * 64, "2026-09-01T09:59:00Z"))
    head = journal(**{AGREED: Mark("10:05", "w", reason=now), DIFFERED: Mark("10:09", "w", reason=now)})
    worker = journal(**{AGREED: Mark("10:02", "w", reason=now)})
    assert compared((head, worker), now) == ("10:05", "10:09")
    assert compared((worker,), now) == ("10:02", None)
    assert compared((head, worker), restarted) == (None, None)
