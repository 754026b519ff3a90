"""A child of this process behind a socket pair."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dspark_deploy.remote.local import LocalPipe


def test_two_threads_may_end_a_child_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = LocalPipe(["sh", "-c", "echo said >&2; cat"])
    waits, twice, let_go = [0], threading.Event(), threading.Event()
    wait = pipe._child.wait

    def wait_slowly(timeout: float | None = None) -> int:
        waits[0] += 1
        if waits[0] > 1:
            twice.set()
        assert let_go.wait(5)
        return wait(timeout)

    monkeypatch.setattr(pipe._child, "wait", wait_slowly)
    with ThreadPoolExecutor(2) as pool:
        endings = [pool.submit(pipe.close) for _ in range(2)]
        was_ended_twice = twice.wait(0.1)
        let_go.set()
        for ending in endings:
            ending.result()
    assert not was_ended_twice
    assert (pipe.closed, pipe.ended(), pipe.errors()) == (True, True, "said\n")


def test_looking_at_what_a_child_said_so_far_does_not_move_where_it_goes_on() -> None:
    pipe = LocalPipe(["sh", "-c", "echo one >&2; echo; read -r line; echo two >&2"])
    assert pipe.recv(1) == b"\n"
    assert pipe.errors() == "one\n"
    pipe.send(b"go on\n")
    assert pipe.recv(1) == b""
    pipe.close()
    assert pipe.errors() == "one\ntwo\n"
