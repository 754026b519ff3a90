"""What can go wrong, one class a remedy, and the exit code that each carries.

An error is three lines for its reader: what happened (and on which node), why, and what to do next. It becomes
text in one place, the click group; below it an `except` names one cause that it can mend or translate.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a command's exit code means. Scripts and unit files rely on these numbers."""

    OK = 0
    BUG = 1
    USAGE = 2
    REFUSED = 3
    LAUNCH_FAILED = 4
    UNREACHABLE = 5
    LOCKED = 6
    DISAGREES = 7
    NOT_AS_WANTED = 8
    INTERRUPTED = 130


class DsparkError(Exception):
    """A failure that its reader can do something about.

    `node` is "head", "worker" or None where no single node is concerned; `why` may hold several lines, the last
    log lines of a rank for example, and is empty where the message already says it.
    """

    code: ClassVar[ExitCode]
    id: ClassVar[str]  # stands in the JSON envelope; a script may match on it

    def __init__(self, message: str, *, remedy: str, why: str = "", node: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.why = why
        self.remedy = remedy
        self.node = node


class ConfigError(DsparkError):
    """A file, flag or variable says something that can't be meant: names file, line and key."""

    code = ExitCode.USAGE
    id = "config"


class Declined(DsparkError):
    """The user said no, or there was no terminal to ask on and no --yes."""

    code = ExitCode.USAGE
    id = "declined"


class CheckRefused(DsparkError):
    """A check says that this start can't work. Nothing was changed. `check` is its id, where it is one alone."""

    code = ExitCode.REFUSED
    id = "check-refused"

    def __init__(self, message: str, *, remedy: str, why: str = "", node: str | None = None, check: str = "") -> None:
        super().__init__(message, remedy=remedy, why=why, node=node)
        self.check = check


class LaunchFailed(DsparkError):
    """A rank died, hung or answered wrongly. What was started is stopped, or the previous release is back."""

    code = ExitCode.LAUNCH_FAILED
    id = "launch-failed"


class NodeUnreachable(DsparkError):
    """No SSH session: refused, timed out, host key not accepted or not authenticated."""

    code = ExitCode.UNREACHABLE
    id = "node-unreachable"


class LockHeld(DsparkError):
    """Another run is changing this pair."""

    code = ExitCode.LOCKED
    id = "lock-held"


class LockLost(DsparkError):
    """The lock was taken away from this run: it stops where it is, and undoes nothing that another may be using."""

    code = ExitCode.LOCKED
    id = "lock-lost"


class Disagreement(DsparkError):
    """A verification, gate or comparison says no."""

    code = ExitCode.DISAGREES
    id = "disagreement"


class NotAsWanted(DsparkError):
    """The command did its part and the pair is not as wanted: nothing serves, or a node could not be cleaned."""

    code = ExitCode.NOT_AS_WANTED
    id = "not-as-wanted"


class Interrupted(DsparkError):
    """Ctrl-C, SIGTERM or SIGHUP. The message says what was left."""

    code = ExitCode.INTERRUPTED
    id = "interrupted"


class KeyRefused(DsparkError):
    """The served API asks for a key: none was given, or another one. The message never holds it."""

    code = ExitCode.USAGE
    id = "key-refused"


class StepFailed(DsparkError):
    """A command on a node failed, or did not end in its time. Flows translate it where they know more."""

    code = ExitCode.LAUNCH_FAILED
    id = "step-failed"
