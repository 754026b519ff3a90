"""The bed goes away with the test run, also with one that is killed, and takes everything with it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from .bed import CHECKOUT, Bed
from .host import wait_until
from .keeper import Names

OTHER_RUN = """
    import json, os, signal, sys, time
    from tests.bed import images
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    from tests.bed.bed import Bed
    bed = Bed.start(number=int(sys.argv[1]))
    bed.head.docker("run", "-d", "--network", "host", "--entrypoint", "sleep", images.STAGE_C, "100").check()
    client = bed.popen(["sleep", "100"])
    namespaces = [os.stat(f"/run/netns/{name}").st_ino for name in bed.names.namespaces]
    pids = [bed._keeper.pid, client.pid, *bed.head.pids(), *bed.worker.pids()]
    print(json.dumps({"keeper": bed._keeper.pid, "pids": pids, "namespaces": namespaces}), flush=True)
    time.sleep(100)
"""


@dataclass(frozen=True)
class OtherRun:
    """A test run of its own with a bed of its own, told apart from the bed of a third one that may follow."""

    names: Names
    process: subprocess.Popen[str]
    keeper: int
    pids: tuple[int, ...]
    namespaces: tuple[int, ...]

    @classmethod
    def begin(cls, names: Names) -> OtherRun:
        """Start it and wait until its bed is up."""
        argv = [sys.executable, "-c", textwrap.dedent(OTHER_RUN), str(names.number)]
        process = subprocess.Popen(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        told = json.loads(process.stdout.readline())
        return cls(names, process, told["keeper"], tuple(told["pids"]), tuple(told["namespaces"]))

    def end(self, how: signal.Signals) -> None:
        """End the run, not its bed."""
        os.kill(self.process.pid, how)
        self.process.wait(20)

    def left(self) -> list[str]:
        """What is still there of its bed."""
        found = [f"process {pid}" for pid in self.pids if is_alive(pid)]
        for name in self.names.namespaces:
            with suppress(FileNotFoundError):
                if Path("/run/netns", name).stat().st_ino in self.namespaces:
                    found.append(name)
        return found


def is_alive(pid: int) -> bool:
    """Is there such a process? One that ended and waits for init to take note of it is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def names(bed: Bed) -> Iterator[Names]:
    """What the session's bed is known by, which is closed for the time of a test."""
    bed.close()
    yield bed.names
    bed.open()


def traces(names: Names) -> list[str]:
    """What of this bed is there on this machine: namespaces, routes, mounts, control groups, loop devices."""
    found = [name for name in names.namespaces if Path("/run/netns", name).exists()]
    routes = subprocess.run(["ip", "route"], check=True, capture_output=True, text=True).stdout.splitlines()
    found += [line for line in routes if f" metric {names.guard_metric}" in line]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if f"{names.state}/" in line]
    found += [str(path) for name in names.cgroups for path in Path("/sys/fs/cgroup").glob(f"*/{name}")]
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # of another bed, which goes just now
            found += [text for text in [path.read_text()] if f"{names.state}/" in text]
    return [*found, *([str(names.state)] if names.state.exists() else [])]


def a_keeper_runs(names: Names) -> bool:
    """Is there this bed, of whatever run?"""
    with names.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def assert_nothing_is_left(names: Names) -> None:
    """Nothing of this bed, unless another run was waiting for its turn."""
    found = traces(names)
    assert found == [] or a_keeper_runs(names)


def test_what_is_looked_for_is_there_as_long_as_there_is_a_bed(bed: Bed) -> None:
    found = traces(bed.names)
    assert {*bed.names.namespaces, str(bed.names.state)} <= {*found}
    assert sum("unreachable" in each for each in found) == 3
    assert sum("disk.img" in each for each in found) == 2


def test_closing_leaves_nothing(names: Names) -> None:
    assert_nothing_is_left(names)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_takes_its_bed_with_it(names: Names, how: signal.Signals) -> None:
    run = OtherRun.begin(names)
    assert len(run.left()) > 10
    run.end(how)
    wait_until(lambda: run.left() == [], 10)
    assert_nothing_is_left(names)


def test_what_a_killed_keeper_left_is_cleared_by_the_next_bed(names: Names) -> None:
    run = OtherRun.begin(names)
    os.kill(run.keeper, signal.SIGKILL)
    run.end(signal.SIGKILL)
    Bed.start(number=names.number).close()
    assert run.left() == []
    assert_nothing_is_left(names)
