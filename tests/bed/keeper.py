"""Holds the bed's lock and takes the bed down when its standard input ends, however the test run ended.

A program of its own, standard library only, in a session of its own: it outlives a test run that is killed. It ends
only what lives in the bed's network namespaces, which carry fixed names and are made by nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

STATE = Path("/var/tmp/dspark-bed")  # a fixed place, so that a later run finds what a killed keeper left
LOCK = Path("/var/tmp/dspark-bed.lock")
NAMESPACES = ("spark-head", "spark-worker", "spark-lan")
CGROUPS = ("bed-head", "bed-worker")
GUARDED = ("10.77.0.0/24", "192.168.177.0/24", "192.168.178.0/24")
"""Addresses of the bed. Without a route of their own, packets for a node that is off would leave the machine."""
GUARD_METRIC = "4096"
LIMIT_S = 10.0


def main() -> int:
    """Take the lock (waiting as long as argv[1] seconds), clean up, say `ready`, wait for the end, clean up again."""
    with LOCK.open("w") as lock:
        deadline = time.monotonic() + float(sys.argv[1])
        while not _locked(lock.fileno()):
            if time.monotonic() > deadline:
                _tell("busy")
                return 1
            if select.select([sys.stdin], [], [], 0.2)[0]:
                return 1  # nobody waits for the bed any more
        take_down()
        STATE.mkdir(mode=0o700)
        _tell("ready")
        sys.stdin.buffer.read()
        take_down()
    return 0


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def take_down() -> None:
    """End all that the bed started and remove what it made. Does nothing where there is no bed."""
    _end_processes()
    for name in NAMESPACES:
        if Path("/run/netns", name).exists():
            _ip("netns", "del", name)
    for network in GUARDED:
        _ip("route", "del", "unreachable", network, "metric", GUARD_METRIC)
    _remove_cgroups()
    if STATE.exists():
        if str(STATE) in Path("/proc/self/mountinfo").read_text():
            raise SystemExit(f"{STATE} is still mounted somewhere below: not removing it")
        shutil.rmtree(STATE)


def _end_processes() -> None:
    deadline = time.monotonic() + LIMIT_S
    while pids := pids_in(NAMESPACES):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise SystemExit(f"processes of the bed do not end: {pids}")
        time.sleep(0.01)


def pids_in(namespaces: Sequence[str]) -> list[int]:
    """Every process in one of these network namespaces."""
    wanted = set()
    for name in namespaces:
        with contextlib.suppress(OSError):
            status = Path("/run/netns", name).stat()
            wanted.add((status.st_dev, status.st_ino))
    if not wanted:
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                status = (entry / "ns" / "net").stat()
                if (status.st_dev, status.st_ino) in wanted:
                    found.append(int(entry.name))
    return found


def _remove_cgroups() -> None:
    deadline = time.monotonic() + LIMIT_S
    for hierarchy in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir()):
        for name in CGROUPS:
            top = hierarchy / name
            folders = sorted(top.rglob("*"), reverse=True) if top.is_dir() else []
            for folder in (*(folder for folder in folders if folder.is_dir()), top):
                while folder.is_dir():
                    with contextlib.suppress(OSError):  # busy until the kernel has buried the last process
                        folder.rmdir()
                        break
                    if time.monotonic() > deadline:
                        return
                    time.sleep(0.01)


def _tell(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=False, capture_output=True)


if __name__ == "__main__":
    for quiet in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(quiet, signal.SIG_IGN)
    raise SystemExit(main())
