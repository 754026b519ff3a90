"""Processes that are forked off one which has loaded what they run: a start is most of what a short one costs.

`Forker` has such a process, a program that calls `serve`. Over a socket comes a request a datagram, JSON with folder
and environment of what is to run, and four descriptors: standard input, output and error, and where the process id and
then the exit code are told. What else is in the request is the program's own.

Of the standard library alone: node_programs.py is such a program, and runs without anything else.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

REQUEST_SIZE = 1 << 16
Work = Callable[[dict[str, Any]], int]  # a request -> exit code, in a process of its own
_OF_BEFORE: list[object] = []


class Forker:
    """The process, from its creation until the end of this one. It may be used by any thread."""

    def __init__(self, *argv: str, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        """`argv` is given the number of the socket as its last word."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        self._process = subprocess.Popen(
            (*argv, str(number)),
            pass_fds=(number,),
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()

    @property
    def pid(self) -> int:
        """Of that process."""
        return self._process.pid

    def close(self) -> None:
        """End it. What it has forked goes on."""
        self._control.close()
        self._process.wait(20)

    def fork(
        self, cwd: Path, environment: Mapping[str, str], streams: Sequence[int], **more: Sequence[str] | str
    ) -> int:
        """Start what `more` says, in a session of its own; `streams` are its standard ones, and closed here.

        Returns what `Forked` is made of.
        """
        request = {"cwd": str(cwd), "environment": dict(environment), **more}
        told, telling = os.pipe()
        theirs = [*streams, telling]
        socket.send_fds(self._control, [json.dumps(request).encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        return told


class Forked:
    """One that was forked. See Popen for what it can do."""

    def __init__(self, told: int) -> None:
        """`told` is what Forker.fork returned."""
        self._told = os.fdopen(told, "rb", buffering=0)
        self.pid = int(self._told.readline())
        self.returncode: int | None = None
        self._reading = threading.Lock()

    def poll(self) -> int | None:
        """See Popen."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """See Popen."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            with self._reading:  # one of two threads that wait
                if self.returncode is None:
                    self.returncode = int(self._told.readline() or -signal.SIGKILL)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """See Popen."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """See Popen."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """See Popen."""
        self.send_signal(signal.SIGKILL)


# --- the process that forks ---------------------------------------------------------------------------------------


def serve(control: socket.socket, work: Work) -> None:
    """Fork until nobody can ask any more. This process may have no thread."""
    gc.freeze()  # a collection would write to the memory that all of them share
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    telling: dict[int, int] = {}  # by process id
    while True:
        ready = select.select([control.fileno(), reader], [], [])[0]
        if reader in ready:
            os.read(reader, 512)
            _tell_ends(telling)
        if control.fileno() in ready:
            data, descriptors, _, _ = socket.recv_fds(control, REQUEST_SIZE, 4)
            if not data:
                return
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                be(json.loads(data), descriptors[:3], work)
            for descriptor in descriptors[:3]:
                os.close(descriptor)
            telling[pid] = descriptors[3]
            os.write(descriptors[3], b"%d\n" % pid)


def _tell_ends(telling: dict[int, int]) -> None:
    while telling:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        descriptor = telling.pop(pid)
        with suppress(BrokenPipeError):  # nobody waits for it
            os.write(descriptor, b"%d\n" % os.waitstatus_to_exitcode(status))
        os.close(descriptor)


def be(request: dict[str, Any], streams: Sequence[int], work: Work) -> NoReturn:
    """Be what was asked for, in a session of its own."""

    def begin() -> int:
        os.setsid()
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environment"])
        return work(request)

    become([(stream, number) for number, stream in enumerate(streams)], begin)


def become(wiring: Sequence[tuple[int, int]], work: Callable[[], int]) -> NoReturn:
    """Be another program from here on, with these descriptors alone: `wiring` has each and the number that it gets."""
    code = 1
    try:
        for descriptor, number in wiring:
            os.dup2(descriptor, number)
        os.closerange(3, 256)
        # Those of before know what they stood for, a file for instance. They are kept: to let go of one is to flush it,
        # and a thread that is none any more here may have been in the middle of that.
        _OF_BEFORE.extend((sys.stdin, sys.stdout, sys.stderr))
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
        code = work()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  as python itself ends with anything
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it any more, or it was closed
                stream.flush()
        os._exit(code)
