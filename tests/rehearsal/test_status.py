"""See what it does, and what it did: status, its watch, logs, records and the plan of a way back."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from prometheus_client.parser import text_string_to_metric_families

from ..warm import ToolRun
from .pair import DSPARK, RehearsedPair

LIMIT_S = 60


class Following:
    """A command that goes on until it is interrupted. Its lines are waited for."""

    def __init__(self, process: ToolRun) -> None:
        self.process = process
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        threading.Thread(target=self._pump, daemon=True).start()

    def until(self, text: str) -> str:
        """The first line from here on that holds `text`."""
        while (line := self._lines.get(timeout=LIMIT_S)) is not None:
            if text in line:
                return line
        raise AssertionError(f"it ended without {text}")

    def interrupt(self) -> int:
        """As Ctrl-C does. Returns its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(LIMIT_S)

    def _pump(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)


@contextmanager
def following(pair: RehearsedPair, *words: str) -> Iterator[Following]:
    process = pair.begin("rehearse", *words)
    try:
        yield Following(process)
    finally:
        process.kill()
        process.wait()


def test_what_serves_is_told_and_a_rank_that_dies_is_seen_by_whoever_watches_or_follows(
    serving: RehearsedPair,
) -> None:
    serves(serving)
    watching = ("status", "--watch", "--every", "100ms", "--output", "json")
    with following(serving, *watching) as watch, following(serving, "logs", "worker", "-f", "--tail", "1") as logs:
        assert json.loads(watch.until('"state": "serving"'))["exit_code"] == 0
        logs.until("worker | ")
        (container,) = serving.api("worker").containers()
        serving.api("worker").kill(container.id)
        (trouble,) = json.loads(watch.until('"state": "split"'))["result"]["troubles"]
        assert (trouble["node"], bool(trouble["since"])) == ("worker", True)
        assert "exit code 137" in trouble["facts"][0]
        assert "exit code 137" in logs.until("[dspark: the rank ended")
        serving.dspark("up", "-q").check()
        logs.until("[dspark: a new rank runs")
        logs.until("distributed_init_method")
        watch.until('"state": "serving"')
        assert (watch.interrupt(), logs.interrupt()) == (130, 130)


def serves(pair: RehearsedPair) -> None:
    """What answers is told to be a stand-in, the load is its own, and Prometheus can read the file."""
    report = pair.dspark("status", "--prometheus", "dspark.prom", "--output", "json").check().json()["result"]
    assert report["state"] == "serving"
    assert "no model ran" in report["stand_in"]
    assert (report["load"]["running"], report["load"]["waiting"]) == (0, 0)
    assert all(rank["uptime_s"] >= 0 and rank["image_as_tagged"] for rank in report["ranks"])
    page = (pair.state / "dspark.prom").read_text()
    samples = {
        sample.name: sample.value for family in text_string_to_metric_families(page) for sample in family.samples
    }
    assert samples["dspark_up"] == 1.0


def test_on_a_terminal_a_watch_redraws_itself(rehearsed: RehearsedPair) -> None:
    controller, terminal = pty.openpty()
    argv = [str(DSPARK), "rehearse", "status", "--watch", "--every", "50ms"]
    environment = {**rehearsed.environment, "TERM": "xterm", "COLUMNS": "80", "LINES": "40"}
    with subprocess.Popen(argv, env=environment, cwd=rehearsed.state, stdout=terminal, stderr=terminal) as watch:
        os.close(terminal)
        seen = b""
        while not re.search(rb"\x1b\[1A.*down", seen, re.DOTALL):  # the cursor goes up over what it drew before
            seen += os.read(controller, 4096)
        watch.send_signal(signal.SIGINT)
        while b"the watch has ended" not in seen:
            seen += os.read(controller, 4096)
        assert watch.wait(LIMIT_S) == 130
    os.close(controller)
    assert b"Traceback" not in seen


def test_a_way_back_is_shown_before_it_is_taken_and_runs_are_told_packed_and_explained(
    serving: RehearsedPair,
) -> None:
    first = serving.release
    serving.dspark("up", "-p", "coding-1m", "-q", "-y").check()
    plan = serving.dspark("rollback", "-n", "--output", "json").check().json()["result"]
    assert (plan["release"], plan["changes"]) == (first, True)
    assert plan["ends"] is not None
    shown = serving.dspark("history", "show", "last", "--output", "json").check().json()["result"]
    assert (shown["command"], shown["outcome"], shown["profile"]) == ("up", "serving", "coding-1m")
    assert shown["run"] in serving.dspark("history").check().stdout
    assert "the boot is healthy" in serving.called("explain", shown["run"]).check().stdout
    packed = serving.dspark("history", "export", "last", "--output", "json").check().json()["result"]
    with tarfile.open(packed["archive"]) as archive:
        names = {member.name.partition("/")[2] for member in archive}
    assert {"ABOUT.txt", "run.json", "head.log", "worker.log"} <= names
