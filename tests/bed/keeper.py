"""Holds a bed's lock and takes the bed down when its standard input ends, however the test run ended.

A program of its own, standard library only, in a session of its own: it outlives a test run that is killed. It ends
only what lives in the bed's network namespaces, which carry names of their own and are made by nothing else.

    keeper.py NUMBER SECONDS     which of the machine's beds, and how long to wait for its lock
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
from dataclasses import dataclass
from pathlib import Path

GUARDED = ("10.77.0.0/24", "192.168.177.0/24", "192.168.178.0/24")
"""Addresses of the bed. Without a route of their own, packets for a node that is off would leave the machine."""
LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Names:
    """What the machine knows one of its beds by: each worker of a test run has a bed of its own.

    Fixed, so that a later run finds what a killed keeper left. On the nodes and between them all beds are alike.
    """

    number: int

    @property
    def state(self) -> Path:
        """The folder with all of its files."""
        return Path(f"/var/tmp/dspark-bed{self._suffix}")

    @property
    def lock(self) -> Path:
        """The file whose lock is held as long as there is this bed."""
        return Path(f"/var/tmp/dspark-bed{self._suffix}.lock")

    @property
    def lan(self) -> str:
        """The network namespace of the client, and of every cable's other end."""
        return self.namespace("lan")

    def namespace(self, name: str) -> str:
        """The network namespace of a node by its role, or of the lan."""
        return f"spark-{name}{self._suffix}"

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(map(self.namespace, ("head", "worker", "lan")))

    def cgroup(self, role: str) -> str:
        """The control group below which a node's dockerd puts its containers."""
        return f"bed-{role}{self._suffix}"

    @property
    def cgroups(self) -> tuple[str, ...]:
        return tuple(map(self.cgroup, ("head", "worker")))

    @property
    def guard_metric(self) -> str:
        """Of the routes that guard the machine: each bed has its own."""
        return str(4096 + self.number)

    @property
    def _suffix(self) -> str:
        return f"-{self.number}" if self.number else ""


def main(names: Names, patience_s: float) -> int:
    """Take the lock, clean up, say `ready`, wait for the end, clean up again."""
    with names.lock.open("w") as lock:
        deadline = time.monotonic() + patience_s
        while not _locked(lock.fileno()):
            if time.monotonic() > deadline:
                _tell("busy")
                return 1
            if select.select([sys.stdin], [], [], 0.2)[0]:
                return 1  # nobody waits for the bed any more
        take_down(names)
        names.state.mkdir(mode=0o700)
        _tell("ready")
        sys.stdin.buffer.read()
        take_down(names)
    return 0


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def take_down(names: Names) -> None:
    """End all that the bed started and remove what it made. Does nothing where there is no bed."""
    _end_processes(names.namespaces)
    for name in names.namespaces:
        if Path("/run/netns", name).exists():
            _ip("netns", "del", name)
    for network in GUARDED:
        _ip("route", "del", "unreachable", network, "metric", names.guard_metric)
    _remove_cgroups(names.cgroups)
    if names.state.exists():
        if f"{names.state}/" in Path("/proc/self/mountinfo").read_text():
            raise SystemExit(f"{names.state} is still mounted somewhere below: not removing it")
        shutil.rmtree(names.state)


def _end_processes(namespaces: Sequence[str]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while pids := pids_in(namespaces):
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


def _remove_cgroups(cgroups: Sequence[str]) -> None:
    deadline = time.monotonic() + LIMIT_S
    for hierarchy in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir()):
        for name in cgroups:
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
    raise SystemExit(main(Names(int(sys.argv[1])), float(sys.argv[2])))
