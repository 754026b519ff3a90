"""What all programs share: the request, the framed answers, and the end when nobody listens any more.

Standard input holds the program, one line of JSON (marker and request), the payload, and then nothing, or heartbeat
bytes, until the caller is gone. An answer is one line: the caller's random marker, then JSON. Whatever a login
banner or a shell profile prints around it is passed over.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import sys

TYPE_CHECKING = False  # the real one costs the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from typing import Any

STANDARD_PATHS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin", "/snap/bin")
FOREIGN_PREFIXES = ("DOCKER_", "COMPOSE_", "BUILDX_")  # would choose another engine, project or file than we mean
READ_SIZE = 65536
WHOLE = _thread.allocate_lock()
"""Held while a file is written: the end of the session waits for the end of that, so that no piece of it stays."""


class Refused(Exception):
    """The program can't do what it was asked. Becomes an error for the user: what, why, and what to do."""

    def __init__(self, message: str, *, why: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.document = {"message": message, "why": why, "remedy": remedy}


class Call:
    """One call: what is asked, what is sent along, and where the answers go."""

    def __init__(self) -> None:
        envelope = json.loads(sys.stdin.buffer.readline())
        self.request: dict[str, Any] = envelope["request"]
        self._marker: str = envelope["marker"]
        self._payload_size: int = envelope["payload"]

    def payload(self) -> bytes:
        """Everything that follows the request. Raises Refused where the caller is gone before its end."""
        data = sys.stdin.buffer.read(self._payload_size)
        if len(data) < self._payload_size:
            raise Refused("the data ended too early", why=f"{len(data)} of {self._payload_size} bytes came")
        return data

    def answer(self, document: Mapping[str, Any]) -> None:
        """Print one document for the caller."""
        # A profile may leave the cursor in the middle of a line.
        sys.stdout.buffer.write(f"\n{self._marker}{json.dumps(document)}\n".encode())
        sys.stdout.buffer.flush()

    def end_with_session(self, clean_up: Callable[[], None] | None = None) -> None:
        """From now on, end this program and all that it started as soon as the caller is gone.

        Call it once the payload is read; `clean_up` runs before the end.
        """
        _thread.start_new_thread(_end_at_eof, (clean_up,))


def serve(main: Callable[[Call], None]) -> None:
    """Run `main` on the call that waits on standard input, and end the process."""
    _lead_own_group()
    tidy(os.environ)
    call = Call()
    try:
        main(call)
    except Refused as refused:
        call.answer({"refused": refused.document})
    # Not sys.exit: the thread that waits on standard input must not hold up the end.
    os._exit(0)


def tidy(environment: MutableMapping[str, str]) -> None:
    """Make `environment` one in which commands behave alike on every node; everything else stays as it is."""
    for name in list(environment):
        if name.startswith(FOREIGN_PREFIXES):
            del environment[name]
    environment.pop("LANGUAGE", None)
    environment["LC_ALL"] = "C.UTF-8"
    present = environment.get("PATH", "").split(":")
    # A shell that is no login shell often lacks some of these: docker may lie in /usr/local/bin or /snap/bin.
    environment["PATH"] = ":".join([*filter(None, present), *(p for p in STANDARD_PATHS if p not in present)])


def find_on_path(name: str) -> str | None:
    """The absolute path of a command, or None."""
    for folder in os.environ["PATH"].split(":"):
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def end_group() -> None:
    """End this program and everything that it started and that stayed in its process group."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _lead_own_group() -> None:
    if os.getpgrp() != os.getpid():
        os.setpgrp()


def _end_at_eof(clean_up: Callable[[], None] | None) -> None:
    while os.read(0, READ_SIZE):  # a heartbeat, or what was sent too late
        pass
    if clean_up is not None:
        clean_up()
    WHOLE.acquire()
    end_group()
