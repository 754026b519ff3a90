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
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import keeper
from .bed import CHECKOUT, Bed
from .host import wait_until

OTHER_RUN = """
    import json, os, signal, time
    from tests.bed import images
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    from tests.bed.bed import Bed
    bed = Bed.start()
    bed.head.docker("run", "-d", "--network", "host", "--entrypoint", "sleep", images.STAGE_C, "100").check()
    client = bed.popen(["sleep", "100"])
    namespaces = [os.stat(f"/run/netns/{name}").st_ino for name in ("spark-head", "spark-worker", "spark-lan")]
    pids = [bed._keeper.pid, client.pid, *bed.head.pids(), *bed.worker.pids()]
    print(json.dumps({"keeper": bed._keeper.pid, "pids": pids, "namespaces": namespaces}), flush=True)
    time.sleep(100)
"""


@dataclass(frozen=True)
class OtherRun:
    """A test run of its own with a bed of its own, told apart from the bed of a third one that may follow."""

    process: subprocess.Popen[str]
    keeper: int
    pids: tuple[int, ...]
    namespaces: tuple[int, ...]

    @classmethod
    def begin(cls) -> OtherRun:
        """Start it and wait until its bed is up."""
        argv = [sys.executable, "-c", textwrap.dedent(OTHER_RUN)]
        process = subprocess.Popen(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        told = json.loads(process.stdout.readline())
        return cls(process, told["keeper"], tuple(told["pids"]), tuple(told["namespaces"]))

    def end(self, how: signal.Signals) -> None:
        """End the run, not its bed."""
        os.kill(self.process.pid, how)
        self.process.wait(20)

    def left(self) -> list[str]:
        """What is still there of its bed."""
        found = [f"process {pid}" for pid in self.pids if is_alive(pid)]
        for name in keeper.NAMESPACES:
            path = Path("/run/netns", name)
            if path.exists() and path.stat().st_ino in self.namespaces:
                found.append(name)
        return found


def is_alive(pid: int) -> bool:
    """Is there such a process? One that ended and waits for init to take note of it is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def closed(bed: Bed) -> Iterator[None]:
    """The session's bed closed for the time of a test."""
    bed.close()
    yield
    bed.open()


def traces() -> list[str]:
    """What of any bed is there on this machine: namespaces, routes, mounts, control groups, loop devices."""
    found = [name for name in keeper.NAMESPACES if Path("/run/netns", name).exists()]
    routes = subprocess.run(["ip", "route"], check=True, capture_output=True, text=True).stdout.splitlines()
    found += [line for line in routes if any(network in line for network in keeper.GUARDED)]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if str(keeper.STATE) in line]
    found += [str(path) for name in keeper.CGROUPS for path in Path("/sys/fs/cgroup").glob(f"*/{name}")]
    backing = Path("/sys/block").glob("loop*/loop/backing_file")
    found += [text for path in backing if str(keeper.STATE) in (text := path.read_text())]
    return [*found, *([str(keeper.STATE)] if keeper.STATE.exists() else [])]


def a_keeper_runs() -> bool:
    """Is there a bed, of whatever run?"""
    with keeper.LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def assert_nothing_is_left() -> None:
    """Nothing of any bed, unless another run was waiting for its turn."""
    found = traces()
    assert found == [] or a_keeper_runs()


@pytest.mark.usefixtures("closed")
def test_closing_leaves_nothing() -> None:
    assert_nothing_is_left()


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_takes_its_bed_with_it(how: signal.Signals) -> None:
    run = OtherRun.begin()
    assert len(run.left()) > 10
    run.end(how)
    wait_until(lambda: run.left() == [], 10)
    assert_nothing_is_left()


@pytest.mark.usefixtures("closed")
def test_what_a_killed_keeper_left_is_cleared_by_the_next_bed() -> None:
    run = OtherRun.begin()
    os.kill(run.keeper, signal.SIGKILL)
    run.end(signal.SIGKILL)
    Bed.start().close()
    assert run.left() == []
    assert_nothing_is_left()
