"""Follow one rank: its log in a thread of its own, its container when asked."""

from __future__ import annotations

import threading
from collections import deque

from dspark_deploy.errors import DsparkError, LaunchFailed
from dspark_deploy.facts.node import Container
from dspark_deploy.remote.host import Engine, Host, LogLine, Logs

KEPT_LINES = 4000  # of each rank; a boot prints about 1500
SHOWN_LINES = 8  # in an error


class RankWatch:
    """One container of the pair, from its start on. Memory is bounded whatever it prints."""

    def __init__(self, host: Host, container: Container, marker: str = "") -> None:
        self._host = host
        self._container = container
        self._marker = marker
        self._lines: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._closed = threading.Event()
        self._logs: Logs | None = None
        self._stream_error: DsparkError | None = None
        self.marked = threading.Event()  # the marker was printed
        self._thread = threading.Thread(target=self._follow, args=(host.engine(),), daemon=True)
        self._thread.start()

    @property
    def node(self) -> str:
        """The node that this rank runs on."""
        return self._host.name

    def check(self) -> None:
        """Raise LaunchFailed where the rank died or was restarted since its start."""
        now = self._host.engine().inspect(self._container.id)
        if now is None:
            raise self._died("its container is gone: something else removed it")
        if now.state != "running":
            killed = ", killed for lack of memory" if now.oom_killed else ""
            raise self._died(f"its container is {now.state}, exit code {now.exit_code}{killed}")
        if now.restarts > self._container.restarts:
            raise self._died("the engine restarted it: the other rank's rendezvous can't survive that")

    def tail(self, count: int = SHOWN_LINES) -> str:
        """Its last lines, oldest first."""
        return "\n".join(line.text.rstrip() for line in list(self._lines)[-count:])

    def lines(self) -> tuple[LogLine, ...]:
        """Everything kept of its log."""
        return tuple(self._lines)

    def close(self) -> None:
        """Stop following. The container is not touched."""
        self._closed.set()
        if self._logs is not None:
            self._logs.close()

    def drain(self, timeout_s: float = 1.0) -> None:
        """Let the log of a rank that ended arrive before it is quoted."""
        self._thread.join(timeout_s)

    def _died(self, how: str) -> LaunchFailed:
        self.drain()
        return LaunchFailed(
            f"{self._host.where}: the {self.node} rank ended while it started: {how}",
            why=self.tail() or (str(self._stream_error) if self._stream_error else "it printed nothing"),
            remedy=f"mend what its last lines name; `dspark logs {self.node}` shows more while it exists",
            node=self.node,
        )

    def _follow(self, engine: Engine) -> None:
        try:
            self._logs = engine.logs(self._container.id, follow=True)
            for line in self._logs:
                self._lines.append(line)
                if self._marker and self._marker in line.text:
                    self.marked.set()
                if self._closed.is_set():
                    return
        except DsparkError as error:
            # The container's own state, not its log, decides whether the rank lives; the reason is kept for show.
            self._stream_error = error
