from __future__ import annotations

from pathlib import Path
from typing import Any

from dspark_deploy.remote.local import LocalHost

PAIR = {"pair": "spark-pair"}


def ask(local: LocalHost, **request: Any) -> dict[str, Any]:
    return local.call("journal", {**PAIR, **request}, timeout_s=5)


def test_a_node_that_knows_nothing_tells_nothing_and_makes_no_folder(local: LocalHost, home: Path) -> None:
    assert ask(local) == {"history": [], "marks": {}, "releases": {}}
    assert not (home / ".local").exists()


def test_entries_are_told_oldest_first_and_only_the_last_ones(local: LocalHost) -> None:
    for number in range(5):
        ask(local, append={"run": str(number)})
    assert [entry["run"] for entry in ask(local)["history"]] == ["0", "1", "2", "3", "4"]
    assert [entry["run"] for entry in ask(local, tail=2)["history"]] == ["3", "4"]


def test_a_half_written_line_costs_only_itself(local: LocalHost, home: Path) -> None:
    ask(local, append={"run": "a"})
    path = home / ".local/share/dspark/spark-pair/history.jsonl"
    path.write_text(path.read_text() + '{"run": "b", "outc')
    ask(local, append={"run": "c"})
    assert [entry["run"] for entry in ask(local)["history"]] == ["a", "c"]


def test_a_mark_stays_until_it_is_taken_away(local: LocalHost) -> None:
    ask(local, set={"booting": {"at": "t"}, "unconfirmed-worker": {"at": "u"}})
    assert ask(local, set={"booting": None})["marks"] == {"unconfirmed-worker": {"at": "u"}}


def test_the_files_are_closed_to_others(local: LocalHost, home: Path) -> None:
    ask(local, append={"run": "a"}, set={"booting": {"at": "t"}})
    folder = home / ".local/share/dspark/spark-pair"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    assert modes == {"spark-pair": 0o700, "history.jsonl": 0o600, "marks.json": 0o600}


def test_a_long_history_loses_its_older_half(local: LocalHost, home: Path) -> None:
    path = home / ".local/share/dspark/spark-pair/history.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f'{{"run": "{number}", "message": "{"x" * 1000}"}}\n' for number in range(1100)))
    ask(local, append={"run": "new"})
    runs = [entry["run"] for entry in ask(local, tail=10_000)["history"]]
    assert (len(runs), runs[0], runs[-1]) == (551, "550", "new")
