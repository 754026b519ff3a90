"""A node as the rest of the tool sees it, whether it is reached through SSH or is this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import SecretStr

from dspark_deploy.facts.node import Container


@dataclass(frozen=True, slots=True)
class Result:
    """How a command on a node ended."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line a container printed. `at` is the engine's own RFC 3339 stamp, the node's clock."""

    at: str
    text: str


class Stream(Protocol):
    """Bytes both ways: an SSH channel, a local socket. What the engine's and the API's HTTP run over."""

    def send(self, data: bytes) -> int: ...
    def recv(self, size: int) -> bytes: ...
    def settimeout(self, timeout: float | None) -> None: ...
    def close(self) -> None: ...


class Session(Protocol):
    """A program that runs on the node for as long as its channel is open."""

    def receive(self, *, timeout_s: float) -> dict[str, Any]:
        """The next document that the program prints. Raises StepFailed at its end or after `timeout_s`."""
        ...

    def beat(self) -> None:
        """One heartbeat byte. Raises StepFailed where the channel is gone."""
        ...

    def close(self) -> None:
        """End the program: it sees the end of its input."""
        ...


class Logs(Protocol):
    """A container's output, line by line."""

    def __iter__(self) -> Iterator[LogLine]: ...
    def __next__(self) -> LogLine: ...
    def close(self) -> None:
        """End it; from any thread. Whoever waits for a line then sees the end."""
        ...


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """What the engine tells of one container as it happens. `at` is seconds since the epoch, by the node's clock."""

    at: float
    action: str  # docker's own word: create, start, die, oom, kill, stop, destroy, ...
    container_id: str
    name: str
    exit_code: int | None = None  # of a death


class Events(Protocol):
    """What happens to a node's containers, one by one as it does."""

    def __iter__(self) -> Iterator[EngineEvent]: ...
    def __next__(self) -> EngineEvent: ...
    def close(self) -> None:
        """End it; from any thread. Whoever waits for the next one then sees the end."""
        ...


class Engine(Protocol):
    """The node's Docker engine. Every call has a deadline; errors name the node."""

    def containers(self, pair: str) -> tuple[Container, ...]:
        """All containers that carry the pair's label, in whatever state."""
        ...

    def inspect(self, container_id: str) -> Container | None:
        """One container, or None where it is gone."""
        ...

    def stop(self, container: Container) -> None:
        """Ask it to end, wait for its own stop grace, kill it, remove it. Gone already is fine."""
        ...

    def logs(
        self, container_id: str, *, follow: bool = False, since_s: float | None = None, tail: int | None = None
    ) -> Logs:
        """Its output, oldest first; `since_s` is seconds before the node's now. Ends with the container where
        `follow`, and with the connection."""
        ...

    def events(self, pair: str) -> Events:
        """What happens from now on to the containers that carry the pair's label. Ends with the engine, and with the
        connection."""
        ...

    def image_id(self, reference: str) -> str | None:
        """What the reference names now, or None."""
        ...

    def time_s(self) -> float:
        """The node's clock, seconds since the epoch."""
        ...


class Host(Protocol):
    """One node. Opening it is the only thing that can be slow without a command running."""

    @property
    def name(self) -> str:
        """ "head" or "worker"."""
        ...

    @property
    def where(self) -> str:
        """For messages: `worker (ubuntu@10.77.0.2)`."""
        ...

    @property
    def address(self) -> str:
        """The management address a user's client would dial; 127.0.0.1 for `local`."""
        ...

    @property
    def api_key(self) -> SecretStr | None:
        """What the API that this node serves is to be asked with. Nothing that it prints is handed on with it."""
        ...

    def run(self, argv: Sequence[str], *, timeout_s: float, cwd: str | None = None) -> Result:
        """Run one command there, in an environment without DOCKER_*, COMPOSE_*. It dies with its session.

        Raises StepFailed after `timeout_s`, NodeUnreachable where the link is gone.
        """
        ...

    def call(
        self, program: str, request: Mapping[str, Any], *, timeout_s: float, payload: bytes = b""
    ) -> dict[str, Any]:
        """Run one of remote/programs and return the document it prints. `payload` follows the request."""
        ...

    def start(self, program: str, request: Mapping[str, Any], *, timeout_s: float) -> Session:
        """Start one of remote/programs that stays."""
        ...

    def engine(self) -> Engine:
        """Its Docker engine, over the same connection. Opens on first use."""
        ...

    def dial(self, address: str, port: int, *, timeout_s: float) -> Stream:
        """A TCP connection made from the node: a forwarded channel.

        Raises ConnectionError where it is refused, TimeoutError where nothing answers, StepFailed where the node
        forbids it, NodeUnreachable where the link is gone.
        """
        ...

    def close(self) -> None:
        """End the connection and everything that runs over it."""
        ...
