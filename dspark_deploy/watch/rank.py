"""Follow one rank: its log in a thread of its own, its container when asked."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from dspark_deploy.errors import DsparkError
from dspark_deploy.facts.node import Container
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Engine, Host, LogLine, Logs

KEPT_LINES = 4000  # of each rank; a boot prints about 1500
KEPT_CHARACTERS = 4096  # of a line
SHOWN_LINES = 8  # in an error
DRAIN_S = 1.0
EARLY_S = 1.0  # a container may print before its engine has noted that it started
OVERLAP_S = 5.0  # read again when a log is followed anew: its lines are told apart by their stamps


@dataclass(frozen=True, slots=True)
class Heard:
    """A line of a rank's log, and when it was printed, by our clock."""

    line: LogLine
    when_s: float


Listener = Callable[[Heard], None]


class RankWatch:
    """One container of the pair. Memory is bounded whatever it prints; `listener` is called from the log's thread.

    `attached`: it ran before it was watched. Its lines then have the time at which they were printed, and those of
    earlier starts of the same container are passed over.
    """

    def __init__(
        self,
        host: Host,
        container: Container,
        clock: Clock,
        listener: Listener,
        *,
        marker: str = "",
        attached: bool = False,
    ) -> None:
        self._host = host
        self._container = container
        self._clock = clock
        self._listener = listener
        self._marker = marker
        self._attached = attached
        self._lines: deque[Heard] = deque(maxlen=KEPT_LINES)
        # Seconds since the epoch, by the node's clock: what was printed until then is passed over.
        self._known_s = _epoch_s(container.started_at) - EARLY_S if attached and container.started_at else 0.0
        self._closed = threading.Event()
        self._logs: Logs | None = None
        self._stream_error: DsparkError | None = None
        self.began_s = clock.now()
        self.marked = threading.Event()  # the marker was printed
        self._thread = self._begin(None)

    @property
    def node(self) -> str:
        """The node that this rank runs on."""
        return self._host.name

    @property
    def where(self) -> str:
        """The same, for messages."""
        return self._host.where

    @property
    def container_id(self) -> str:
        """What the engine calls it."""
        return self._container.id

    @property
    def silent(self) -> bool:
        """Whether its log has ended: with the container, or with the stream."""
        return not self._thread.is_alive()

    def death(self) -> str | None:
        """How the rank ended since its start; None while it lives. A log that broke off is followed anew.

        Raises StepFailed or NodeUnreachable.
        """
        now = self._host.engine().inspect(self._container.id)
        if now is None:
            return "its container is gone: something else removed it"
        if now.state != "running":
            killed = ", killed for lack of memory" if now.oom_killed else ""
            return f"its container is {now.state}, exit code {now.exit_code}{killed}"
        if now.restarts > self._container.restarts or now.started_at != self._container.started_at:
            return "it was restarted: the other rank's rendezvous can't survive that"
        if self.silent and not self._closed.is_set():
            self._known_s = _epoch_s(self._lines[-1].line.at) if self._lines else self._known_s
            self._thread = self._begin(OVERLAP_S)
        return None

    def tail(self, count: int = SHOWN_LINES) -> str:
        """Its last lines, oldest first; why there are none, where the log can't be read."""
        lines = [heard.line.text.rstrip() for heard in list(self._lines)[-count:]]
        return "\n".join(lines) or (self._stream_error.message if self._stream_error else "")

    def heard(self) -> tuple[Heard, ...]:
        """Everything kept of its log."""
        return tuple(self._lines)

    def close(self) -> None:
        """Stop following. The container is not touched."""
        self._closed.set()
        if self._logs is not None:
            self._logs.close()

    def drain(self, timeout_s: float = DRAIN_S) -> None:
        """Let the log of a rank that ended arrive before it is judged."""
        self._thread.join(timeout_s)

    def _begin(self, since_s: float | None) -> threading.Thread:
        thread = threading.Thread(target=self._follow, args=(self._host.engine(), since_s), daemon=True)
        thread.start()
        return thread

    def _follow(self, engine: Engine, since_s: float | None) -> None:
        try:
            ahead_s = engine.time_s() - self._clock.now() if self._attached else None
            if ahead_s is not None and self._container.started_at:
                self.began_s = min(self.began_s, _epoch_s(self._container.started_at) - ahead_s)
            # Of a pair that has served for weeks the last lines are enough: it boots no more.
            tail = KEPT_LINES if self._attached else None
            self._logs = engine.logs(self._container.id, follow=True, since_s=since_s, tail=tail)
            for line in self._logs:
                self._take(line, ahead_s)
                if self._closed.is_set():
                    return
        except DsparkError as error:
            # The container's own state, not its log, decides whether the rank lives; the reason is kept for show.
            self._stream_error = error

    def _take(self, line: LogLine, ahead_s: float | None) -> None:
        printed_s = _epoch_s(line.at)
        if printed_s <= self._known_s:
            return
        now_s = self._clock.now()
        when_s = now_s if ahead_s is None else min(now_s, printed_s - ahead_s)
        heard = Heard(LogLine(line.at, line.text[:KEPT_CHARACTERS]), when_s)
        self._lines.append(heard)
        self._listener(heard)
        if self._marker and self._marker in line.text:
            self.marked.set()


def _epoch_s(stamp: str) -> float:
    """RFC 3339 as the engine writes it; Python reads its first six decimals."""
    return datetime.fromisoformat(stamp).timestamp()
