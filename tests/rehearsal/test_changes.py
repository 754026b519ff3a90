"""`plan`, `switch`, `rollback`, `history`, `unlock` and `--lock-wait` on the embedded pair."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..bed.host import wait_until
from ..bed.run import words_of
from ..contract import NODES, both, left
from ..warm import ToolRun
from .pair import RehearsedPair, listens

STAGE_C = "vllm-dspark-runtime:dspark-nvfp4-stage-c"
ROUNDS = 3  # `make test-sweep` plays 20


def result(pair: RehearsedPair, *words: str) -> Any:
    """The `result` of a command that ends well."""
    return pair.dspark(*words, "--output", "json").check().json()["result"]


def containers(pair: RehearsedPair) -> dict[str, list[str]]:
    """Each node's, by id."""
    return {node: [each.id for each in pair.api(node).containers()] for node in NODES}


def marks(pair: RehearsedPair) -> dict[str, list[str]]:
    """What runs have left on each node for the next one to heed."""
    found: dict[str, list[str]] = {}
    for node in NODES:
        path = pair.home(node) / ".local/share/dspark/rehearsal/marks.json"
        found[node] = sorted(json.loads(path.read_text())) if path.exists() else []
    return found


def runs(pair: RehearsedPair) -> list[Path]:
    """The records on the controller."""
    return sorted((pair.state / "dspark" / "rehearsal" / "runs").iterdir())


@contextmanager
def another_run(pair: RehearsedPair, home: Path) -> Iterator[ToolRun]:
    """An `up` of another controller that has the lock and waits for its worker."""
    pair.switch("worker", {"never_rendezvous": True})
    run = pair.begin_elsewhere(home, "up")
    try:
        wait_until(lambda: pair.api("worker").containers())
        yield run
    finally:
        run.terminate()
        run.communicate(timeout=60)


def test_a_plan_of_another_profile_shows_what_changes_in_the_files_and_ends_nothing(serving: RehearsedPair) -> None:
    before = serving.release
    kept = containers(serving)
    plan = result(serving, "plan", "-p", "coding-1m")
    assert plan["ends"] == before
    assert plan["changes"]
    for node in NODES:
        added = [line for line in plan["diffs"][node].splitlines() if line.startswith("+") and "16384" in line]
        assert added, plan["diffs"][node]
    assert "not known" in plan["downtime"]
    assert containers(serving) == kept


def test_a_plan_of_what_serves_changes_nothing(serving: RehearsedPair) -> None:
    plan = result(serving, "plan", "-p", "agent-1m")
    assert not plan["changes"]
    assert plan["diffs"] == {}


def test_switch_there_and_back_again(serving: RehearsedPair) -> None:
    before = serving.release
    there = result(serving, "switch", "stage-c", "--yes")
    assert (there["family"], there["profile"], there["state"]) == ("stage-c", "agent-1m", "serving")
    back = result(serving, "switch", "anemll", "--yes")
    assert back["release"] == before
    told = serving.dspark("history").check().stdout
    assert there["release"] in told


def test_switching_to_what_serves_is_said_and_changes_nothing(serving: RehearsedPair) -> None:
    kept = containers(serving)
    ran = serving.dspark("switch", "anemll").check()
    assert "already serves this" in ran.stdout
    assert containers(serving) == kept


def test_switching_needs_something_that_serves(rehearsed: RehearsedPair) -> None:
    ran = rehearsed.dspark("switch", "stage-c", "--yes")
    assert ran.returncode == 8
    assert "--family stage-c" in ran.stderr


def test_a_target_that_dies_at_boot_brings_back_what_served(serving: RehearsedPair) -> None:
    before = serving.release
    serving.switch("worker", {"stage-c": {"die_at": "load", "die_message": "CUDA error: no kernel image"}})
    ran = serving.dspark("switch", "stage-c", "--yes")
    assert ran.returncode == 4, ran
    assert "CUDA error: no kernel image" in ran.stderr
    assert "serves again" in ran.stderr
    assert result(serving, "status")["release"] == before
    run = runs(serving)[-1]
    assert json.loads((run / "run.json").read_text())["outcome"] == "launch-failed"
    assert "CUDA error: no kernel image" in (run / "worker.log").read_text()
    assert (run / "head.log").exists()


def test_a_wreck_is_kept_where_that_is_asked_for(serving: RehearsedPair) -> None:
    serving.switch("worker", {"stage-c": {"die_at": "load"}})
    ran = serving.dspark("switch", "stage-c", "--yes", "--no-return")
    assert ran.returncode == 4, ran
    assert [each.state for each in serving.api("worker").containers()] == ["exited"]


def test_a_target_whose_image_one_node_lacks_stops_nothing(serving: RehearsedPair) -> None:
    kept = containers(serving)
    serving.api("worker").untag(STAGE_C)
    ran = serving.dspark("switch", "stage-c", "--yes")
    assert ran.returncode == 3, ran
    assert "worker" in ran.stderr
    assert containers(serving) == kept


def test_a_rollback_serves_the_release_before(serving: RehearsedPair) -> None:
    first = serving.release
    result(serving, "up", "-p", "coding-1m", "--yes")
    back = result(serving, "rollback", "--yes")
    assert (back["release"], back["profile"]) == (first, "agent-1m")
    assert left(serving) == both("running agent-1m")


def test_a_release_that_nobody_keeps_is_exit_2(serving: RehearsedPair) -> None:
    ran = serving.dspark("rollback", "ffffffffffff", "--yes")
    assert ran.returncode == 2
    assert "not kept on either node" in ran.stderr


def test_two_runs_at_once_one_wins_and_one_meets_the_lock(rehearsed: RehearsedPair, tmp_path: Path) -> None:
    for _ in range(ROUNDS):
        runs = [rehearsed.begin_elsewhere(tmp_path / name, "up") for name in ("one", "other")]
        said = [run.communicate(timeout=60)[1] for run in runs]
        assert {run.returncode for run in runs} == {0, 6}, said
        assert result(rehearsed, "status")["state"] == "serving"
        rehearsed.reset()


def test_a_run_waits_for_the_lock_as_long_as_it_is_told(rehearsed: RehearsedPair, tmp_path: Path) -> None:
    with another_run(rehearsed, tmp_path / "other") as first:
        refused = rehearsed.dspark("up")
        assert refused.returncode == 6, refused
        assert "up` of" in refused.stderr
        waiting = rehearsed.begin_elsewhere(tmp_path / "waiting", "up", "--lock-wait", "60s")
        rehearsed.switch("worker", {})
        first.terminate()
        assert first.wait(60) == 130
        _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, said


def test_unlock_says_whom_it_ended_and_that_run_undoes_nothing(rehearsed: RehearsedPair, tmp_path: Path) -> None:
    with another_run(rehearsed, tmp_path / "other") as first:
        told = rehearsed.dspark("unlock").check()
        assert "up` of" in told.stdout
        _, said = first.communicate(timeout=60)
    assert first.returncode == 6, said
    assert len(rehearsed.api("worker").containers()) == 1
    rehearsed.switch("worker", {})
    rehearsed.dspark("up").check()


def test_a_free_lock_has_nobody_to_end(rehearsed: RehearsedPair) -> None:
    assert "nobody" in rehearsed.dspark("unlock").check().stdout


def test_a_stop_that_is_owed_is_told_and_made_good(serving: RehearsedPair) -> None:
    mark = {"unconfirmed-worker": {"at": "2026-11-30T10:00:00+00:00", "who": "me@here", "reason": "not reached"}}
    (serving.home("head") / ".local/share/dspark/rehearsal/marks.json").write_text(json.dumps(mark))
    told = serving.dspark("status", "--output", "json").json()["result"]
    assert told["owed"] == ["worker"]
    assert "could not confirm a stop on worker" in told["detail"]
    ran = serving.dspark("up").check()
    assert "stopping it now" in ran.stderr
    assert left(serving) == both("running agent-1m")
    assert marks(serving) == {"head": [], "worker": []}


def test_a_boot_that_was_left_is_told_and_noted_once_it_serves(rehearsed: RehearsedPair, tmp_path: Path) -> None:
    rehearsed.switch("head", {"hang_at": "shards"})
    run = rehearsed.begin_elsewhere(tmp_path / "other", "up", "-p", "agent-1m")
    said = words_of(run, "wait until the API answers")
    run.terminate()
    said += run.communicate(timeout=60)[1]
    assert run.returncode == 130, said
    assert "go on booting" in said
    assert marks(rehearsed) == {"head": ["booting"], "worker": ["booting"]}
    told = rehearsed.dspark("status", "--output", "json")
    assert told.returncode == 8
    assert told.json()["result"]["detached"]["who"]
    assert "left it to boot on" in told.json()["result"]["detail"]
    rehearsed.switch("head", {})
    wait_until(lambda: listens(rehearsed.ports["api"]))
    rehearsed.dspark("status", "-q").check()
    assert marks(rehearsed) == {"head": [], "worker": []}
    assert [each["outcome"] for each in result(rehearsed, "history")["entries"]] == ["serving"]


def test_a_watch_from_another_machine_shows_a_boot_that_was_left_and_completes_it(
    rehearsed: RehearsedPair, tmp_path: Path
) -> None:
    rehearsed.switch("head", {"hang_at": "shards"})
    up = rehearsed.begin_elsewhere(tmp_path / "one", "up", "-p", "agent-1m")
    said = words_of(up, "wait until the API answers")
    up.send_signal(signal.SIGINT)
    said += up.communicate(timeout=60)[1]
    assert up.returncode == 130, said
    assert "watch` shows it" in said
    watch = rehearsed.begin_elsewhere(tmp_path / "two", "watch")
    words_of(watch, "wait until the API answers")
    watch.send_signal(signal.SIGINT)
    said = watch.communicate(timeout=60)[1]
    assert watch.returncode == 130, said
    assert "the pair goes on as it is" in said
    assert marks(rehearsed) == {"head": ["booting"], "worker": ["booting"]}
    watch = rehearsed.begin_elsewhere(tmp_path / "two", "watch", "--output", "json")
    booting = next(event for line in watch.stdout if (event := json.loads(line))["event"] == "boot")
    assert [rank["node"] for rank in booting["ranks"]] == ["head", "worker"]
    rehearsed.switch("head", {})
    told, said = watch.communicate(timeout=60)
    assert watch.returncode == 0, said
    assert json.loads(told.splitlines()[-1])["result"]["state"] == "serving"
    assert marks(rehearsed) == {"head": [], "worker": []}
    (entry,) = result(rehearsed, "history")["entries"]
    assert (entry["command"], entry["outcome"]) == ("up", "serving")
    assert entry["kv_cache_tokens"] > 2_000_000
    assert entry["phases"]["worker"]["rendezvous"] >= 0


def test_a_pair_that_serves_or_is_down_is_told_at_once_by_watch(serving: RehearsedPair) -> None:
    assert "serving" in serving.dspark("watch").check().stdout
    serving.reset()
    down = serving.dspark("watch")
    assert down.returncode == 8
    assert "no boot to watch" in down.stderr


def test_a_fatal_line_ends_the_wait_while_both_ranks_run_and_the_record_tells_it(rehearsed: RehearsedPair) -> None:
    words = "(Worker pid=1) ERROR 07-18 13:29:28 [m.py:1] torch.OutOfMemoryError: CUDA out of memory."
    rehearsed.switch("worker", {"say_at": "load", "say": words})
    rehearsed.switch("head", {"hang_at": "shards"})
    ran = rehearsed.dspark("up")
    assert ran.returncode == 4, ran
    assert "F31" in ran.stderr
    assert "exit code" not in ran.stderr
    run = runs(rehearsed)[-1]
    told = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    fatal = [event["failure"] for event in told if event["event"] == "found" and event["severity"] == "fatal"]
    assert fatal[0] == "F31"
    assert json.loads((run / "run.json").read_text())["outcome"] == "launch-failed"


def test_a_boot_in_which_nothing_moves_is_called_a_stall(rehearsed: RehearsedPair) -> None:
    rehearsed.switch("head", {"hang_at": "shards"})
    ran = rehearsed.dspark("up", "--stall", "1s")
    assert ran.returncode == 4, ran
    assert "nothing of either rank has moved" in ran.stderr
    assert rehearsed.dspark("up", "--stall", "0").returncode == 2
