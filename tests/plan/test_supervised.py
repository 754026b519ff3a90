from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dspark_deploy.plan.journal import Entry, Journal, Mark
from dspark_deploy.plan.supervised import BEGUN, Kind, Past, begun, kind_of, meant_to_serve, past_restarts

NOON = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)


def entry(at: str, command: str, outcome: str, release: str | None = "A", message: str = "") -> Entry:
    when = f"2026-09-01T{at}:00+00:00"
    return Entry(f"{command}-{at}", when, "you@here", command, outcome, release, message=message)


def journal(*entries: Entry, **marks: Mark) -> Journal:
    return Journal(entries, marks, {})


UP = entry("10:00", "up", "serving")
DOWN = entry("10:30", "down", "down", None)


@pytest.mark.parametrize(
    ("journals", "release"),
    [
        pytest.param([journal(), journal()], None, id="nothing-ever"),
        pytest.param([journal(UP), journal(UP)], "A", id="up"),
        pytest.param([journal(UP, DOWN), journal(UP, DOWN)], None, id="down"),
        pytest.param([journal(UP, DOWN), journal(UP)], None, id="down-while-a-node-was-gone"),
        pytest.param([journal(UP, entry("11:00", "up", "launch-failed", "B"))], "A", id="up-that-failed"),
        pytest.param([journal(UP, DOWN, entry("11:00", "up", "launch-failed", "B"))], None, id="up-that-failed-cold"),
        pytest.param([journal(UP, entry("11:00", "switch", "serving", "B"))], "B", id="switch"),
        pytest.param([journal(UP, entry("11:00", "down", "not-as-wanted", None))], None, id="down-with-a-rest"),
        pytest.param(
            [journal(UP, entry("11:00", "supervise", BEGUN), entry("11:00", "supervise", "launch-failed"))],
            "A",
            id="a-restart-that-failed",
        ),
        pytest.param([journal(UP, booting=Mark("2026-09-01T11:00:00+00:00", "you@here", "B"))], "B", id="left-to-boot"),
        pytest.param(
            [journal(UP, booting=Mark("2026-09-01T09:00:00+00:00", "you@here", "B"))], "A", id="old-boot-mark"
        ),
        pytest.param(
            [journal(DOWN, entry("10:20", "up", "serving", "B"))], "B", id="an-up-that-had-waited-for-the-down"
        ),
    ],
)
def test_what_is_meant_to_serve_is_what_the_last_deciding_run_said(
    journals: list[Journal], release: str | None
) -> None:
    assert meant_to_serve(journals).release == release


def test_it_says_whose_word_it_is() -> None:
    assert meant_to_serve([journal(UP, DOWN)]).why == "`dspark down` of you@here at 2026-09-01T10:30:00+00:00"


def tried(at: str, outcome: str | None, kind: Kind = "died", message: str = "") -> list[Entry]:
    """A restart: its beginning, and its end where it has one."""
    entries = [entry(at, "supervise", BEGUN, message=begun(kind, "the rank died"))]
    return entries if outcome is None else [*entries, entry(at, "supervise", outcome, message=message)]


@pytest.mark.parametrize(
    ("entries", "past"),
    [
        pytest.param([UP], Past(), id="none"),
        pytest.param([UP, *tried("11:30", "serving")], Past(restarts=1), id="one-that-served"),
        pytest.param([UP, *tried("10:30", "serving")], Past(), id="older-than-the-window"),
        pytest.param(
            [UP, *tried("11:30", "launch-failed", message="no memory")],
            Past(restarts=1, failed=1, last="no memory"),
            id="one-that-failed",
        ),
        pytest.param(
            [UP, *tried("10:10", "launch-failed", message="x"), *tried("11:50", "launch-failed", message="y")],
            Past(restarts=1, failed=2, last="y"),
            id="failures-count-whenever-they-were",
        ),
        pytest.param(
            [UP, *tried("11:10", "launch-failed"), *tried("11:50", "serving")], Past(restarts=2), id="then-it-served"
        ),
        pytest.param([UP, *tried("11:50", "interrupted")], Past(restarts=1), id="interrupted-says-nothing"),
        pytest.param(
            [UP, *tried("11:50", "serving", "out-of-memory")],
            Past(restarts=1, out_of_memory=1),
            id="for-lack-of-memory",
        ),
        pytest.param(
            [*tried("11:10", "launch-failed"), entry("11:20", "up", "serving"), *tried("11:50", "serving")],
            Past(restarts=1),
            id="a-person's-up-starts-the-count-anew",
        ),
    ],
)
def test_earlier_restarts_are_counted_since_a_persons_last_word(entries: list[Entry], past: Past) -> None:
    assert past_restarts([journal(*entries), journal(*entries)], NOON, 3600.0) == past


def test_a_restart_that_never_ended_has_failed() -> None:
    past = past_restarts([journal(UP, *tried("11:50", None))], NOON, 3600.0)
    assert (past.failed, "never ended" in past.last) == (1, True)


def test_the_end_of_a_restart_may_be_known_to_one_node_alone() -> None:
    whole, half = tried("11:50", "serving"), tried("11:50", None)
    assert past_restarts([journal(*whole), journal(*half)], NOON, 3600.0).failed == 0


def test_an_entry_tells_what_its_restart_was_for() -> None:
    assert kind_of(tried("11:50", None, "wedged")[0]) == "wedged"
    assert kind_of(UP) is None
