"""What a node runs for its logins, forked off one process that has loaded it: a start is most of what it costs.

`python -I -S forker.py DESCRIPTOR` is that process. Over the socket comes a request a datagram, JSON with the folder
and the environment, and four descriptors: standard input, output and error, and where the process id and then the exit
code are told. The program comes over its standard input, its length first, as remote/program.py sends it. With `docker`
in the request, the node's folder and words for the stand-in of that command, there is none.

`Forked` is the other side: what sshd.py needs of a subprocess.Popen.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

REQUEST_SIZE = 1 << 16
Docker = Callable[[str, list[str]], int]  # the node's folder and the words -> exit code


class Forker:
    """The process, from its creation until the end of this one."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = (sys.executable, "-I", "-S", __file__, str(theirs.fileno()))
        descriptors = (theirs.fileno(),)
        self._process = subprocess.Popen(argv, pass_fds=descriptors, stdin=subprocess.DEVNULL, start_new_session=True)
        theirs.close()

    def close(self) -> None:
        """End it. What it has forked goes on."""
        self._control.close()
        self._process.wait(20)

    def fork(self, cwd: Path, environment: Mapping[str, str], docker: tuple[str, ...] = ()) -> Forked:
        """Start a program that comes over its standard input, or the stand-in of the command `docker`."""
        request = {"cwd": str(cwd), "environment": dict(environment), "docker": docker}
        (stdin, ours_in), (ours_out, stdout), (ours_err, stderr), (told, telling) = (os.pipe() for _ in range(4))
        theirs = [stdin, stdout, stderr, telling]
        socket.send_fds(self._control, [json.dumps(request).encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        return Forked(ours_in, ours_out, ours_err, told)


class Forked:
    """See Popen."""

    def __init__(self, stdin: int, stdout: int, stderr: int, told: int) -> None:
        self.stdin = open(stdin, "wb")  # noqa: SIM115  its user closes it
        self.stdout = open(stdout, "rb", buffering=0)  # noqa: SIM115  likewise
        self.stderr = open(stderr, "rb", buffering=0)  # noqa: SIM115  likewise
        self._told = open(told, "rb", buffering=0)  # noqa: SIM115  closed once all is told
        self.pid = int(self._told.readline())
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """See Popen."""
        if self._code is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a program", timeout or 0)
            self._code = int(self._told.readline() or -signal.SIGKILL)
        return self._code


# --- the process that forks ---------------------------------------------------------------------------------------


def main(control: socket.socket, docker: Docker) -> None:
    """Fork until nobody can ask any more."""
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
                _be(json.loads(data), descriptors, docker)
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


def _be(request: dict[str, Any], descriptors: list[int], docker: Docker) -> NoReturn:
    """The program, or the command."""
    code = 0
    try:
        os.setsid()
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        os.closerange(3, 256)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environment"])
        if request["docker"]:
            folder, *words = request["docker"]
            code = docker(folder, words)
        else:
            program = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
            exec(program, {"__name__": "__main__", "sys": sys})  # noqa: S102  as the tool has python do it on a node
        sys.stdout.flush()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  as python itself ends with anything
        traceback.print_exc()
        code = 1
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2] / "dspark_deploy" / "rehearsal"))
    main(socket.socket(fileno=int(sys.argv[1])), importlib.import_module("docker").main)
