"""The pair's lock: one run at a time changes a pair, and a dead run leaves nothing locked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from dspark_deploy.errors import DsparkError, LockHeld
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.remote.host import Host, Session

ANSWER_S = 15  # a node's python has started by then, also on a busy node
BEAT_S = 5  # the node frees the lock after 30 s without one


@contextmanager
def locked(hosts: Mapping[str, Host], pair: str, owner: Mapping[str, Any]) -> Iterator[None]:
    """Hold the lock of `pair` on every node while the body runs. `owner` is what another run is shown.

    Taken head first on every controller, so that two runs can't each hold one. Raises LockHeld.
    """
    with ExitStack() as held:
        sessions = [held.enter_context(_session(hosts[node], pair, owner)) for node in HEAD_FIRST if node in hosts]
        held.enter_context(_beating(sessions))
        yield


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


def _held(host: Host, owner: Mapping[str, Any]) -> LockHeld:
    who = owner.get("who", "an unknown user")
    return LockHeld(
        f"{host.where}: `{owner.get('command', 'another command')}` of {who} is changing this pair",
        why=f"since {owner['since']}, process {owner.get('pid', '?')}" if "since" in owner else "",
        remedy="wait until it has ended; `dspark status` and `dspark logs` work meanwhile",
        node=host.name,
    )


@contextmanager
def _beating(sessions: list[Session]) -> Iterator[None]:
    """Send each lock program its heartbeat. A dead link is told by the next step on that node, not from here."""
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(sessions, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _beat(sessions: list[Session], ended: threading.Event) -> None:
    alive = list(sessions)
    while not ended.wait(BEAT_S):
        for session in tuple(alive):
            try:
                session.beat()
            except DsparkError:
                alive.remove(session)
