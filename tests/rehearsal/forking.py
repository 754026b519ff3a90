"""Nodes that fork what their logins run: `python -m tests.rehearsal.forking FOLDER` is the background of such a pair.

Nothing else differs from rehearsal/background.py, and nobody who works on the pair sees any of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dspark_deploy.rehearsal import background, sshd
from dspark_deploy.rehearsal.places import Places
from dspark_deploy.remote.program import COMMAND, PATH_SETUP
from dspark_deploy.remote.ssh import DIAL_ENGINE

from ..forker import Forked, Forker

PROGRAM = Path(__file__).with_name("node_programs.py")
FURTHER = PATH_SETUP.partition("}")[2].partition(";")[0]  # what a program finds on PATH beside the login's own
DIAL = ("system", "dial-stdio")


class Program(Forked):
    """What sshd.py needs of a Popen."""

    def __init__(self, forker: Forker, cwd: Path, environment: Mapping[str, str], command: Sequence[str]) -> None:
        (stdin, ours_in), (ours_out, stdout), (ours_err, stderr) = (os.pipe() for _ in range(3))
        more = {"node": str(cwd.parent), "command": command}
        super().__init__(forker.fork(cwd, environment, (stdin, stdout, stderr), **more))
        self.stdin = os.fdopen(ours_in, "wb")
        self.stdout = os.fdopen(ours_out, "rb", buffering=0)
        self.stderr = os.fdopen(ours_err, "rb", buffering=0)


def new_forker() -> Forker:
    """One that has loaded what nodes run."""
    return Forker(sys.executable, "-I", "-S", str(PROGRAM))


def forking(forker: Forker) -> SimpleNamespace:
    """What stands for `subprocess` in sshd.py."""

    def popen(argv: tuple[str, ...], *, cwd: Path, env: dict[str, str], **more: Any) -> Any:
        environment = {**env, "PATH": f"{env['PATH']}:{FURTHER}"}
        match argv[-1]:
            case str(command) if command == COMMAND:
                return Program(forker, cwd, environment, ())
            case str(command) if command == DIAL_ENGINE:
                return Program(forker, cwd, environment, DIAL)
            case _:
                return subprocess.Popen(argv, cwd=cwd, env=env, **more)

    return SimpleNamespace(Popen=popen, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)


def main(places: Places) -> None:
    """Be the pair until told to end."""
    setattr(sshd, "subprocess", forking(new_forker()))  # noqa: B010  a plain assignment is none of a name that it exports
    background.main(places)


if __name__ == "__main__":
    main(Places(Path(sys.argv[1])))
