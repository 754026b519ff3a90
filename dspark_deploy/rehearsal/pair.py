"""Find, start and end the background process of a rehearsal.

Everything of it lies in one folder, `dspark/rehearsal` below the user's state home, the records of the runs on it
included. Whether it lives is told by a lock that it holds on a file in there, never by its process id alone: that may
be another process's by now.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.errors import ConfigError, StepFailed
from dspark_deploy.rehearsal.places import Places
from dspark_deploy.rehearsal.spec import Spec
from dspark_deploy.remote.clock import Clock

START_S, STOP_S, TURN_S = 30.0, 10.0, 0.02


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair that was started: it may have ended since."""

    pid: int
    began: str  # RFC 3339
    scenario: str
    time_scale: float

    def __str__(self) -> str:
        return f"process {self.pid}, since {self.began}, scenario {self.scenario}, time scale {self.time_scale:g}"


@contextmanager
def guarded(places: Places) -> Iterator[None]:
    """Let one command at a time look for a pair and start or end one. Raises ConfigError where it has no place.

    The folder around the pair's is what is locked. It goes with the pair, where nothing else is in it.
    """
    folder = places.folder.parent
    descriptor = _lock(places, folder)
    try:
        yield
        if not any(folder.iterdir()):
            folder.rmdir()
    finally:
        os.close(descriptor)


def _lock(places: Places, folder: Path) -> int:
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY)
        except OSError as error:
            raise _no_place(places, error) from error
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat()):
            return descriptor
        os.close(descriptor)  # who had the lock removed the folder


def recorded(places: Places) -> Pair | None:
    """The pair that the folder tells of, alive or not."""
    try:
        return Pair(**json.loads(places.facts.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def is_alive(places: Places) -> bool:
    """Whether a background process has the folder."""
    try:
        with places.alive.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def start(places: Places, spec: Spec, clock: Clock) -> Pair:
    """Start a pair in the folder, which is emptied first. Returns once both nodes answer.

    Raises StepFailed, and ConfigError where the folder can't be written.
    """
    _end(places, clock)  # of a start that was broken off, if anything
    remove(places)
    try:
        places.folder.mkdir(mode=0o700)
        spec.write(places.spec)
    except OSError as error:
        raise _no_place(places, error) from error
    with places.log.open("wb") as log:
        process = subprocess.Popen(
            (sys.executable, "-m", "dspark_deploy.rehearsal.background", str(places.folder)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=places.folder,
            start_new_session=True,  # Ctrl-C at the terminal is for the command in front
        )
    try:
        return _come_up(process, places, clock)
    except BaseException:  # an interruption too: what does not serve anybody must not stay
        process.kill()
        raise


def _come_up(process: subprocess.Popen[bytes], places: Places, clock: Clock) -> Pair:
    deadline = clock.now() + START_S
    while (pair := recorded(places)) is None:
        if process.poll() is not None or clock.now() > deadline:
            raise _not_started(places)
        clock.sleep(TURN_S)
    return pair


def stop(places: Places, clock: Clock) -> Pair | None:
    """End what has the folder and remove it. Returns what was there; raises StepFailed where it does not end."""
    pair = recorded(places)
    _end(places, clock)
    remove(places)
    return pair


def _end(places: Places, clock: Clock) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = clock.now() + STOP_S
        if is_alive(places):
            os.kill(int(places.alive.read_text()), number)
        while is_alive(places) and clock.now() < deadline:
            clock.sleep(TURN_S)
    if is_alive(places):
        raise StepFailed("the rehearsal's background process does not end", remedy=f"see {places.log}")


def remove(places: Places) -> None:
    """Forget all of it. Raises ConfigError where the folder is not the rehearsal's, but a real pair's of that name."""
    if not places.folder.exists():
        return
    if not places.spec.exists() and (places.folder / "runs").exists():
        raise ConfigError(
            f"{places.folder} holds the records of a pair that is called {places.folder.name}",
            remedy="give that pair another `name` in its inventory, or move the folder away",
        )
    shutil.rmtree(places.folder)


def _no_place(places: Places, error: OSError) -> ConfigError:
    return ConfigError(
        f"the rehearsal can't be kept in {places.folder}",
        why=f"{error.strerror}: {error.filename}",
        remedy="let XDG_STATE_HOME name a folder that you may write to",
    )


def _not_started(places: Places) -> StepFailed:
    said = places.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return StepFailed(
        "the rehearsal's background process did not come up",
        why=said[-1] if said else f"it said nothing within {START_S:g} s",
        remedy=f"see {places.log}; `dspark rehearse stop` clears it away",
    )
