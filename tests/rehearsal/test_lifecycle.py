"""A rehearsal from its start to its end, however it comes."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from ..bed.host import wait_until
from ..bed.run import Ran
from .pair import FAST, RehearsedPair, clear_left_over, listens


def processes(pair: RehearsedPair) -> list[str]:
    """Every process that names the pair's folder: the background, containers, programs of logins."""
    listed = subprocess.run(["ps", "-Aww", "-o", "pid=,args="], check=True, capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if str(pair.folder) in line]


def test_a_pair_stays_up_for_other_terminals_until_stop(unused: RehearsedPair) -> None:
    up = unused.run("rehearse", "--time-scale", FAST, "up", "-p", "agent-1m").check()
    assert "a rehearsal pair is up" in up.stderr
    told = unused.run("rehearse", "status", "--output", "json").check().json()["result"]
    assert (told["state"], told["pair"]) == ("serving", "rehearsal")
    port = unused.ports["api"]
    assert listens(port)
    stopped = unused.dspark("stop").check()
    assert "ended the rehearsal pair" in stopped.stdout
    assert not listens(port)
    wait_until(lambda: not processes(unused), 1, "the end of all processes")
    assert list(unused.state.iterdir()) == [], "something is left"


def test_stop_without_a_pair_has_nothing_to_do(unused: RehearsedPair) -> None:
    assert "nothing to stop" in unused.dspark("stop").check().stdout
    assert unused.dspark("stop", "--output", "json").json()["result"] == {"stopped": None}


@pytest.mark.parametrize("asked", [("--scenario", "image-missing"), ("--time-scale", "7")])
def test_another_scenario_or_time_scale_than_the_one_that_is_up_is_refused(
    rehearsed: RehearsedPair, asked: tuple[str, str]
) -> None:
    ran = rehearsed.dspark(*asked, "up")
    assert ran.returncode == 2
    assert "dspark rehearse stop" in ran.stderr
    assert rehearsed.dspark("--scenario", "healthy", "--time-scale", FAST, "down").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rehearse", "up"), "can't be rehearsed"),
        (("up", "-i", "inventory.yaml"), "own inventory"),
        (("up", "-iinventory.yaml"), "own inventory"),
        (("up", "--inventory=inventory.yaml"), "own inventory"),
        (("--ssh-config", "config", "up"), "own inventory"),
        ((), "name the command"),
        (("no-such-command",), "No such command"),
        (("--time-scale", "0", "up"), "time-scale"),
        (("--time-scale", "-1", "up"), "time-scale"),
        (("--time-scale", "nan", "up"), "time-scale"),
        (("--time-scale", "inf", "up"), "time-scale"),
        (("--scenario", "worker-die-loading", "up"), "worker-dies-loading"),
    ],
)
def test_what_can_not_be_meant_is_exit_2(unused: RehearsedPair, words: tuple[str, ...], said: str) -> None:
    ran = unused.dspark(*words)
    assert ran.returncode == 2, ran
    assert said in ran.stderr
    assert not unused.folder.exists(), "a pair was started for it"


def test_the_users_own_inventory_and_variables_have_no_say(
    rehearsed: RehearsedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rehearsed.state / "inventory.yaml").write_text("name: real\nhead: {host: a}\nworker: {host: b}\n")
    monkeypatch.setitem(rehearsed.environment, "DSPARK_INVENTORY", "inventory.yaml")
    monkeypatch.setitem(rehearsed.environment, "DSPARK_SSH_CONFIG", "/no/such/file")
    ran = rehearsed.dspark("status", "--output", "json")
    assert ran.json()["result"]["pair"] == "rehearsal"


def test_options_before_the_command_go_to_it(rehearsed: RehearsedPair) -> None:
    told = rehearsed.called("rehearse", "--output", "json", "-p", "coding-1m", "-q", "up", "-n").check()
    assert told.json()["result"]["profile"] == "coding-1m"


def test_a_machine_without_openssh_needs_none(
    rehearsed: RehearsedPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cat").symlink_to(shutil.which("cat") or "")
    monkeypatch.setitem(rehearsed.environment, "PATH", str(tmp_path))
    ran = rehearsed.dspark("status", "--output", "json")
    assert ran.json()["result"]["state"] == "down", ran


def test_a_killed_background_takes_everything_with_it_and_is_cleared_away(unused: RehearsedPair) -> None:
    unused.dspark("--time-scale", FAST, "up").check()
    assert len(processes(unused)) > 2
    os.kill(unused.background, signal.SIGKILL)
    wait_until(lambda: not processes(unused), 2, "the end of all processes")
    ran = unused.dspark("--time-scale", FAST, "status")
    assert "cleared away a rehearsal that ended by itself" in ran.stderr
    assert ran.returncode == 8


def test_a_background_whose_folder_is_gone_ends(unused: RehearsedPair) -> None:
    unused.dspark("--time-scale", FAST, "status")
    pid = unused.background
    (unused.folder / "pair.json").unlink()
    wait_until(lambda: not is_running(pid), 3, "its end")


def is_running(pid: int) -> bool:
    """A zombie has ended: its parent, this process, did not ask yet."""
    ps = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(ps, check=False, capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_a_background_that_can_not_start_says_why(unused: RehearsedPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(unused.environment, "PYTHONPATH", str(broken_package(unused.state)))
    ran = unused.dspark("status")
    assert ran.returncode == 4, ran
    assert "did not come up" in ran.stderr
    assert "no entropy here" in ran.stderr


def broken_package(folder: Path) -> Path:
    """A folder for PYTHONPATH in which one module that the background needs can't be loaded."""
    (folder / "broken").mkdir()
    (folder / "broken" / "paramiko.py").write_text("raise OSError('no entropy here')\n")
    return folder / "broken"


def test_a_broken_profile_that_nobody_asks_for_does_not_stand_in_the_way(unused: RehearsedPair) -> None:
    (unused.state / "profiles").mkdir()
    (unused.state / "profiles" / "mine.yaml").write_text("name: mine\nextends: no-such-profile\n")
    (unused.state / "profiles" / "other.yaml").write_text("name: other\nextends: agent-1m\nmodel: no-such-model\n")
    assert unused.dspark("--time-scale", FAST, "status").returncode == 8
    ran = unused.dspark("up", "-p", "mine")
    assert ran.returncode == 2
    assert "no-such-profile" in ran.stderr


@pytest.mark.parametrize("taken", ["a file", "/proc"])
def test_a_place_that_can_not_be_written_is_named(unused: RehearsedPair, taken: str) -> None:
    place = unused.state / taken
    if taken == "a file":
        place.touch()
    unused.environment["XDG_STATE_HOME"] = str(place)
    ran = unused.dspark("status")
    assert ran.returncode == 2, ran
    assert f"can't be kept in {place}/dspark/rehearsal" in ran.stderr
    assert "XDG_STATE_HOME" in ran.stderr.splitlines()[-1]
    unused.environment["XDG_STATE_HOME"] = str(unused.state)


def test_blanks_and_percent_signs_in_the_place_change_nothing(unused: RehearsedPair) -> None:
    odd = RehearsedPair(unused.state / "a b%d")
    odd.state.mkdir()
    try:
        ran = odd.dspark("--time-scale", FAST, "status", "--output", "json")
        assert ran.json()["result"]["state"] == "down", ran
        (odd.state / "bin").mkdir()
        (odd.state / "bin/cat").symlink_to(shutil.which("cat") or "")
        odd.environment["PATH"] = str(odd.state / "bin")  # no OpenSSH
        ran = odd.dspark("status", "--output", "json")
        assert ran.json()["result"]["state"] == "down", ran
    finally:
        odd.stop()


def test_a_start_that_was_broken_off_is_ended_by_the_next(unused: RehearsedPair) -> None:
    unused.dspark("--time-scale", FAST, "status")
    first = unused.background
    (unused.folder / "pair.json").rename(unused.state / "kept")  # as long as it is not up, it has none
    os.kill(first, signal.SIGSTOP)  # and so does not see that it is gone
    threading.Timer(0.1, os.kill, (first, signal.SIGCONT)).start()
    ran = unused.dspark("--time-scale", FAST, "status")
    assert "ends a rehearsal whose start was broken off" in ran.stderr
    assert unused.background != first
    wait_until(lambda: not is_running(first), 3, "the end of the first")


def test_hints_name_the_command_that_works_here(rehearsed: RehearsedPair) -> None:
    status = rehearsed.dspark("status")
    assert "`dspark rehearse up` starts it" in status.stdout
    told = rehearsed.dspark("status", "--output", "json").json()["result"]["detail"]
    assert "`dspark rehearse up` starts it" in told
    refused = rehearsed.dspark("logs")
    assert "`dspark rehearse status` shows the pair" in refused.stderr
    usage = rehearsed.dspark("up", "--no-such-option", "--output", "json")
    assert usage.json()["errors"][0]["remedy"] == "`dspark rehearse up --help` lists what can be said"
    assert "Usage: dspark rehearse up" in usage.stderr
    assert "`dspark rehearse stop` ends it" in rehearsed.dspark("--scenario", "image-missing", "up").stderr
    assert "dspark rehearse" not in rehearsed.called("logs").stderr, "outside of a rehearsal"


def test_an_engine_that_does_not_run_leaves_the_state_unknown(unused: RehearsedPair) -> None:
    ran = unused.dspark("--scenario", "dockerd-down", "status", "--output", "json")
    assert ran.returncode == 5, ran
    assert ran.json()["result"]["state"] == "unknown"


def test_both_nodes_have_a_name_of_their_own(rehearsed: RehearsedPair) -> None:
    hosts = ("rehearsal-head", "rehearsal-worker")
    ran = rehearsed.dspark("init", *hosts, "--dry-run", "--output", "json").check()
    choices = {each["key"]: each for each in ran.json()["result"]["choices"]}
    assert "on rehearsal-head," in choices["head.host"]["why"]
    assert "on rehearsal-worker," in choices["worker.host"]["why"]
    assert choices["api.port"]["value"] == rehearsed.ports["api"], "8888 may be taken on this machine"


def test_what_a_killed_test_run_left_is_cleared_away(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / f"dspark-{ended.pid}-left").mkdir()
    (tmp_path / f"dspark-{os.getpid()}-mine").mkdir()
    clear_left_over(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"dspark-{os.getpid()}-mine"]


def test_a_profile_of_the_users_own_can_be_rehearsed(unused: RehearsedPair) -> None:
    (unused.state / "profiles").mkdir()
    (unused.state / "profiles" / "mine.yaml").write_text(
        "name: mine\ntitle: My own\nextends: agent-1m\nmax_num_seqs: 2\nimage: ghcr.io/anemll/dspark-vllm-gx10:mine\n"
    )
    ran = unused.dspark("--time-scale", FAST, "up", "-p", "mine", "--output", "json").check()
    assert ran.json()["result"]["profile"] == "mine"


def test_every_answer_says_that_no_model_ran(serving: RehearsedPair) -> None:
    answer = answered(serving, "/v1/completions", {"prompt": "1", "max_tokens": 1})
    assert "no model ran" in answer["system_fingerprint"]
    assert "no model ran" in answered(serving, "/version", None)["stand_in"]


def answered(pair: RehearsedPair, path: str, body: dict[str, Any] | None) -> dict[str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", pair.ports["api"], timeout=10)
    headers = {"Content-Type": "application/json"}
    connection.request("GET" if body is None else "POST", path, json.dumps(body) if body else None, headers)
    found: dict[str, str] = json.loads(connection.getresponse().read())
    connection.close()
    return found


def test_the_list_names_every_scenario(unused: RehearsedPair) -> None:
    ran: Ran = unused.dspark("--list", "--output", "json").check()
    names = [each["name"] for each in ran.json()["result"]]
    assert names[0] == "healthy"
    assert "worker-dies-loading" in names
    assert not unused.folder.exists()
