"""Run one command and tell how it ended. It dies with its session, and with its time limit.

Request: `argv`, `cwd` (None or relative: from the home directory), `timeout_s`.
Answer: `returncode`, `stdout`, `stderr`, `timed_out`; a signal's number is negative, as Python has it.
"""

from __future__ import annotations

import os
import select
import signal
import time

from dspark_deploy.remote.programs._frame import READ_SIZE, Call, end_group, find_on_path, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEPT_BYTES = 4 << 20  # of each stream, its end: what is left out is said
TURN_S = 0.05  # how soon an end is noticed of a command whose child holds its output open
NOT_FOUND = 127  # what a shell says
NOT_STARTED = 126


class Output:
    """What came through one pipe, bounded."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self._kept = bytearray()
        self._dropped = 0

    def take(self) -> bool:
        """Read what is there. False at the end."""
        data = os.read(self.reader, READ_SIZE)
        self._kept += data
        excess = len(self._kept) - KEPT_BYTES
        if excess > 0:
            del self._kept[:excess]
            self._dropped += excess
        return bool(data)

    def text(self) -> str:
        """Its end as text, with a first line that says how much is missing."""
        text = self._kept.decode(errors="replace")
        return f"[{self._dropped} bytes left out]\n{text}" if self._dropped else text


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    argv, timeout_s = call.request["argv"], call.request["timeout_s"]
    folder = os.path.join(os.path.expanduser("~"), call.request["cwd"] or "")
    try:
        os.chdir(folder)
    except OSError as error:
        call.answer(_not_started(f"{folder}: {error.strerror}", NOT_STARTED))
        return
    if "/" not in argv[0] and find_on_path(argv[0]) is None:
        call.answer(_not_started(f"{argv[0]}: not found on PATH ({os.environ['PATH']})", NOT_FOUND))
        return
    call.answer(run(argv, timeout_s))
    end_group()  # also what the command left behind in its group


def run(argv: list[str], timeout_s: float) -> dict[str, Any]:
    """Run `argv` and wait for its end, no longer than `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    out, err = Output(), Output()
    try:
        child = _spawn(argv, out, err)
    except OSError as error:
        return _not_started(f"{argv[0]}: {error.strerror}", NOT_STARTED)
    status = _wait(child, (out, err), deadline)
    return {
        "returncode": None if status is None else os.waitstatus_to_exitcode(status),
        "stdout": out.text(),
        "stderr": err.text(),
        "timed_out": status is None,
    }


def _spawn(argv: list[str], out: Output, err: Output) -> int:
    """Start `argv` without input. Faster by some milliseconds than the import of subprocess."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    wiring = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate((nothing, out.writer, err.writer))]
    # Python ignores SIGPIPE and a child would inherit that.
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=wiring, setsigdef=[signal.SIGPIPE])
    for descriptor in (nothing, out.writer, err.writer):
        os.close(descriptor)
    return child


def _wait(child: int, outputs: tuple[Output, Output], deadline: float) -> int | None:
    """The wait status of `child`; None where the deadline came first."""
    by_reader = {output.reader: output for output in outputs}
    poll = select.poll()
    for reader in by_reader:
        poll.register(reader, select.POLLIN)
    ended, status = 0, 0
    while True:
        # Asked before the pipes: what the child wrote before its end is there when they are read next.
        if not ended:
            ended, status = os.waitpid(child, os.WNOHANG)
        ready = poll.poll(0 if ended else TURN_S * 1000) if by_reader else []
        for reader, _ in ready:
            if not by_reader[reader].take():
                poll.unregister(reader)
                del by_reader[reader]
        if ended and not ready:
            return status
        if time.monotonic() > deadline:
            return None
        if not ended and not by_reader:
            time.sleep(TURN_S / 10)


def _not_started(reason: str, returncode: int) -> dict[str, Any]:
    return {"returncode": returncode, "stdout": "", "stderr": f"{reason}\n", "timed_out": False}


if __name__ == "__main__":
    serve(main)
