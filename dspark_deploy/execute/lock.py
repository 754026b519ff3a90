"""The pair's lock: one run at a time changes a pair, and a dead run leaves nothing locked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from dspark_deploy.errors import DsparkError, LockHeld, LockLost
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host, Session

ANSWER_S = 15  # a node's python has started by then, also on a busy node
BEAT_S = 5  # the node frees the lock after 30 s without one
RETRY_S = 1.0
RETAKE_S = 35.0  # the lock of a broken connection may be held until its node misses the heartbeat


@contextmanager
def locked(
    hosts: Mapping[str, Host], pair: str, owner: Mapping[str, Any], clock: Clock, *, wait_s: float = 0
) -> Iterator[GuardedClock]:
    """Hold the lock of `pair` on every node while the body runs. `owner` is what another run is shown.

    Taken head first on every controller, so that two runs can't each hold one; while another run holds it, it is tried
    again for `wait_s`. The body waits by the clock that it is given: its waits end with LockLost where the lock is
    taken away. Raises LockHeld.
    """
    deadline = clock.now() + wait_s
    while True:
        try:
            held, sessions = _take(hosts, pair, owner)
        except LockHeld:
            if clock.now() >= deadline:
                raise
            clock.sleep(RETRY_S)
        else:
            break
    with held, _Beat(sessions) as beat:

        def retake(host: Host) -> None:
            beat.add(host.name, _retake(held, host, pair, owner, clock.shielded()))

        yield GuardedClock(clock, beat, retake)


def _take(hosts: Mapping[str, Host], pair: str, owner: Mapping[str, Any]) -> tuple[ExitStack, dict[str, Session]]:
    """Every node's lock, or none."""
    with ExitStack() as held:
        sessions = {
            node: held.enter_context(_session(hosts[node], pair, owner)) for node in HEAD_FIRST if node in hosts
        }
        return held.pop_all(), sessions


@contextmanager
def _session(host: Host, pair: str, owner: Mapping[str, Any]) -> Iterator[Session]:
    session = host.start("lock", {"pair": pair, "owner": dict(owner)}, timeout_s=ANSWER_S)
    try:
        answer = session.receive(timeout_s=ANSWER_S)
        if not answer["locked"]:
            raise _held(host, answer.get("owner") or {})
        yield session
    finally:
        session.close()


def _retake(held: ExitStack, host: Host, pair: str, owner: Mapping[str, Any], clock: Clock) -> Session:
    """The lock of a node that was reached again. Raises LockLost where another run has it by now."""
    deadline = clock.now() + RETAKE_S
    while True:
        try:
            return held.enter_context(_session(host, pair, owner))
        except LockHeld as error:
            if clock.now() >= deadline:
                raise LockLost(
                    f"{host.where}: the lock was lost with the connection, and another run has it now",
                    why=error.message,
                    remedy="`dspark status` shows what is left, once that run has ended",
                    node=host.name,
                ) from error
            clock.sleep(RETRY_S)


def _held(host: Host, owner: Mapping[str, Any]) -> LockHeld:
    who = owner.get("who", "an unknown user")
    return LockHeld(
        f"{host.where}: `{owner.get('command', 'another command')}` of {who} is changing this pair",
        why=f"since {owner['since']}, process {owner.get('pid', '?')}" if "since" in owner else "",
        remedy="wait for it (--lock-wait 10m), or end it with `dspark unlock`; `status` and `logs` work meanwhile",
        node=host.name,
    )


class _Beat:
    """Sends each lock program its heartbeat, and notices a lock that was taken away."""

    def __init__(self, sessions: Mapping[str, Session]) -> None:
        self._sessions = dict(sessions)
        self._changing = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lost: dict[str, DsparkError] = {}

    def __enter__(self) -> _Beat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def add(self, node: str, session: Session) -> None:
        """The lock of `node` was taken anew."""
        with self._changing:
            self._sessions[node] = session
            self._lost.pop(node, None)

    @property
    def lost(self) -> DsparkError | None:
        """Why a lock is not held any more; None while all are."""
        with self._changing:
            return next(iter(self._lost.values()), None)

    def _run(self) -> None:
        while not self._ended.wait(BEAT_S):
            with self._changing:
                sessions = dict(self._sessions)
            for node, session in sessions.items():
                try:
                    session.beat()
                except DsparkError as error:
                    self._lose(node, session, error)

    def _lose(self, node: str, session: Session, error: DsparkError) -> None:
        with self._changing:
            if self._sessions.get(node) is session:
                del self._sessions[node]
                self._lost[node] = error


class GuardedClock:
    """A clock whose waits end where the lock is gone: what goes on then belongs to somebody else."""

    def __init__(self, clock: Clock, beat: _Beat, retake: Callable[[Host], None]) -> None:
        self._clock = clock
        self._beat = beat
        self.retake = retake  # the lock of a node whose connection was opened anew; raises LockLost

    def now(self) -> float:
        """See Clock."""
        return self._clock.now()

    def sleep(self, seconds: float) -> None:
        """See Clock. Raises LockLost, or NodeUnreachable where the lock went with the node."""
        self._clock.sleep(seconds)
        lost = self._beat.lost
        if lost is None:
            return
        if lost.id == "node-unreachable":
            raise lost
        raise LockLost(
            "the lock was taken away from this run: it stops here, and undoes nothing",
            why=lost.message,
            remedy="`dspark status` shows what is left; whoever ran `dspark unlock` may be changing the pair now",
        )

    def shielded(self) -> Clock:
        """See Clock."""
        return self._clock.shielded()
