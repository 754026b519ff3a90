"""Programs on a node: how one is sent, asked and ended, whatever carries its bytes.

The command that a node's shell sees is always the same text, without any user data; program, request and payload go to
its standard input. So no value is ever quoted, and any login shell will do. Answers come back behind a marker made up
for the call, so that no banner, profile or locale can be taken for one.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib import resources
from threading import Lock
from typing import Any, Protocol

from pydantic import SecretStr

from dspark_deploy.errors import DsparkError, StepFailed
from dspark_deploy.remote.host import Engine, Result, Stream

PACKAGE = "dspark_deploy.remote.programs"
BOOTSTRAP = "import sys;exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"
# A shell that is no login shell may lack these.
PATH_SETUP = "PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/snap/bin; export PATH"
# Through sh, since the login shell may be fish or csh; nothing in it is special between their single quotes. The
# system's python first: another one on PATH may be a wrapper that takes longer than everything it is asked for.
COMMAND = (
    f"/bin/sh -c '{PATH_SETUP}; python=/usr/bin/python3; [ -x $python ] || python=python3; "
    f'exec $python -I -S -c "{BOOTSTRAP}"\''
)
ANSWER_MARGIN_S = 5.0  # a program that limits itself gets this much longer for python's start and the answer's way
# By pattern, not by ast: both nodes are asked at once, and Python 3.11's ast.parse fails now and then when two threads
# parse (python/cpython issue 106905).
_OWN_IMPORT = re.compile(rf"^from {re.escape(PACKAGE)}\.(\w+) import", re.MULTILINE)
READ_SIZE = 65536
SHOWN_BYTES = 2000  # of what a program said, in an error


class Pipe(Stream, Protocol):
    """A command on the node: its standard input and output as a stream, its standard error kept."""

    def errors(self) -> str:
        """What it has written to standard error so far; all of it, once its output has ended."""
        ...

    def ended(self) -> bool:
        """Whether its output has ended; what came before may still be unread."""
        ...


class PipedHost(ABC):
    """Everything a Host does that needs no more than a command with pipes. See host.Host for the methods."""

    def __init__(self, name: str, where: str, api_key: SecretStr | None = None) -> None:
        self._name = name
        self._where = where
        self._api_key = api_key
        self._engine: Engine | None = None
        self._engine_lock = Lock()

    @property
    def name(self) -> str:
        """See Host."""
        return self._name

    @property
    def where(self) -> str:
        """See Host."""
        return self._where

    @property
    def api_key(self) -> SecretStr | None:
        """See Host."""
        return self._api_key

    @abstractmethod
    def open_program(self) -> Pipe:
        """Start the python that waits for a program. Raises StepFailed or NodeUnreachable."""

    @abstractmethod
    def open_engine(self) -> Pipe:
        """Start `docker system dial-stdio`. Raises StepFailed or NodeUnreachable."""

    @abstractmethod
    def lost(self) -> DsparkError | None:
        """Why the node can't be reached any more; None while it can."""

    def run(self, argv: Sequence[str], *, timeout_s: float, cwd: str | None = None) -> Result:
        """See Host."""
        request = {"argv": list(argv), "cwd": cwd, "timeout_s": timeout_s}
        answer = self.call("run", request, timeout_s=timeout_s + ANSWER_MARGIN_S)
        if answer["timed_out"]:
            raise StepFailed(
                f"{self.where}: `{' '.join(argv)}` did not end within {timeout_s:g} s and was ended",
                why=_end_of(answer["stderr"] or answer["stdout"]),
                remedy=f"see what holds it up on the {self.name}",
                node=self.name,
            )
        return Result(tuple(argv), answer["returncode"], answer["stdout"], answer["stderr"])

    def call(
        self, program: str, request: Mapping[str, Any], *, timeout_s: float, payload: bytes = b""
    ) -> dict[str, Any]:
        """See Host."""
        deadline = time.monotonic() + timeout_s
        with closing(ProgramSession(self, program, request, payload, timeout_s=timeout_s)) as session:
            return session.receive(timeout_s=max(deadline - time.monotonic(), 0.0))

    def start(self, program: str, request: Mapping[str, Any], *, timeout_s: float) -> ProgramSession:
        """See Host."""
        return ProgramSession(self, program, request, b"", timeout_s=timeout_s)

    def engine(self) -> Engine:
        """See Host."""
        # The docker SDK takes a tenth of a second to import, and a status or an `up` with nothing to do need it not.
        from dspark_deploy.remote.engine import DockerEngine  # noqa: PLC0415  see the line above

        with self._engine_lock:
            if self._engine is None:
                self._engine = DockerEngine(self)
            return self._engine


class ProgramSession:
    """One program while it runs. See host.Session; `receive` may be called from one thread, `beat` from another."""

    def __init__(
        self, host: PipedHost, program: str, request: Mapping[str, Any], payload: bytes, *, timeout_s: float
    ) -> None:
        self._host = host
        self._program = program
        marker = f"dspark-{secrets.token_hex(16)} "
        self._answers = Answers(marker.encode())
        self._pipe = host.open_program()
        self._pipe.settimeout(timeout_s)
        envelope = {"marker": marker, "payload": len(payload), "request": request}
        self._send(b"".join((bundled(program), json.dumps(envelope).encode(), b"\n", payload)))

    def receive(self, *, timeout_s: float) -> dict[str, Any]:
        """See Session."""
        deadline = time.monotonic() + timeout_s
        while (answer := self._answers.next()) is None:
            self._pipe.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._pipe.recv(READ_SIZE)
            except TimeoutError as error:
                raise self._late(timeout_s) from error
            except OSError:
                data = b""  # closed under our hands: the same as its end
            if not data:
                raise self._ended()
            self._answers.feed(data)
        if "refused" in answer:
            raise self._refused(answer["refused"])
        return answer

    def beat(self) -> None:
        """See Session."""
        try:
            alive = self._pipe.send(b".") > 0
        except OSError:
            alive = False
        if not alive:
            raise self._ended()

    def close(self) -> None:
        """See Session."""
        self._pipe.close()

    def _send(self, data: bytes) -> None:
        """Hand over everything. Where the other side ends before, its last words say why; `receive` reads them."""
        view = memoryview(data)
        try:
            while view:
                sent = self._pipe.send(bytes(view[:READ_SIZE]))
                if not sent:
                    return
                view = view[sent:]
        except TimeoutError as error:
            raise self._late() from error
        except OSError:
            return

    def _late(self, timeout_s: float | None = None) -> DsparkError:
        within = "in time" if timeout_s is None else f"within {round(timeout_s, 1):g} s"
        self.close()
        return self._host.lost() or StepFailed(
            f"{self._host.where}: no answer {within} to `{self._program}`",
            why=_end_of(self._pipe.errors()),
            remedy=f"see whether the {self._host.name} is overloaded (`top` there), then run the command again",
            node=self._host.name,
        )

    def _ended(self) -> DsparkError:
        said = self._pipe.errors()
        if (lost := self._host.lost()) is not None:
            return lost
        if "python3" in said and "not found" in said:
            return StepFailed(
                f"{self._host.where}: python3 is not there",
                why=_end_of(said),
                remedy="install Python 3.10 or newer on the node: sudo apt install python3-minimal",
                node=self._host.name,
            )
        return StepFailed(
            f"{self._host.where}: `{self._program}` ended without an answer",
            why=_end_of(said) or "it said nothing",
            remedy=f"try `python3 --version` on the {self._host.name}; 3.10 or newer is needed",
            node=self._host.name,
        )

    def _refused(self, refused: Mapping[str, str]) -> StepFailed:
        return StepFailed(
            f"{self._host.where}: {refused['message']}",
            why=refused["why"],
            remedy=refused["remedy"] or "run the command again",
            node=self._host.name,
        )


class Answers:
    """Finds the documents behind the marker in whatever else a shell prints."""

    def __init__(self, marker: bytes) -> None:
        self._marker = marker
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Take more of what came."""
        self._buffer += data

    def next(self) -> dict[str, Any] | None:
        """The next whole document, or None until more has come."""
        start = self._buffer.find(self._marker)
        if start < 0:
            # Noise, but for a marker that may have begun.
            del self._buffer[: -len(self._marker)]
            return None
        end = self._buffer.find(b"\n", start)
        if end < 0:
            return None
        document: dict[str, Any] = json.loads(self._buffer[start + len(self._marker) : end])
        del self._buffer[: end + 1]
        return document


@cache
def bundled(program: str) -> bytes:
    """The text that BOOTSTRAP reads: its length, a line end, and code that runs `program`.

    The modules of the folder that it imports go first, each under its own full name, so that the program's import
    statements find them.
    """
    parts = ["def _load(n,s):\n m=type(sys)(n);sys.modules[n]=m;exec(compile(s,n,'exec'),m.__dict__)\n"]
    parts += [f"_load({PACKAGE + '.' + name!r},{text_of(name)!r})\n" for name in _needed_by(program)]
    parts.append(f"exec(compile({text_of(program)!r},{program!r},'exec'),{{'__name__':'__main__'}})\n")
    text = "".join(parts).encode()
    return b"%d\n%s" % (len(text), text)


def text_of(program: str) -> str:
    """The text of a module of the folder as it stands there."""
    return resources.files(PACKAGE).joinpath(f"{program}.py").read_text(encoding="utf-8")


def _needed_by(program: str) -> list[str]:
    """The modules of the folder that `program` imports, directly or not, the deepest first."""
    found: list[str] = []
    for name in _OWN_IMPORT.findall(text_of(program)):
        found += [*_needed_by(name), name]
    return list(dict.fromkeys(found))


def _end_of(text: str) -> str:
    return text.strip()[-SHOWN_BYTES:]
