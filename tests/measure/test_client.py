"""What the client makes of good and bad servers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from dspark_deploy.measure.outcome import Outcome, Request
from dspark_deploy.measure.side import Side
from tests.measure.conftest import asked
from tests.rehearsal.standin.loopback import Loopback

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STEP_S = 0.15


def event(text: str, end: str = "null") -> bytes:
    """One event in a chunk of its own."""
    data = f'data: {{"choices": [{{"delta": {{"content": "{text}"}}, "finish_reason": {end}}}]}}\n\n'.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that reads a request and does `answer` with its connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


def outcome_of(answer: Callable[[socket.socket], None], answer_s: float = 5.0) -> Outcome:
    """How one streamed request ends."""

    async def work(side: Side) -> Outcome:
        return await side.client.stream(Request("one", side.chat("Hello", tokens=8)))

    with server(answer) as port:
        return asked(port, work, answer_s=answer_s)


def test_events_have_the_time_at_which_they_came() -> None:
    def slow(connection: socket.socket) -> None:
        connection.sendall(HEAD)
        for text, end in (("a", "null"), ("b", "null"), ("c", '"stop"')):
            time.sleep(STEP_S)
            connection.sendall(event(text, end))
        connection.sendall(b"0\r\n\r\n")

    outcome = outcome_of(slow)
    assert (outcome.ok, outcome.text) == (True, "abc")
    gaps = [after - before for before, after in zip((outcome.sent_s, *outcome.event_s), outcome.event_s, strict=False)]
    assert min(gaps) > 0.6 * STEP_S  # nothing waited for something that came later


def test_a_stream_that_is_cut_is_a_failure() -> None:
    outcome = outcome_of(lambda connection: connection.sendall(HEAD + event("a")))
    assert (outcome.failure, outcome.text) == ("refused", "a")


def test_a_stream_without_a_finish_reason_is_a_failure() -> None:
    outcome = outcome_of(lambda connection: connection.sendall(HEAD + event("a") + b"0\r\n\r\n"))
    assert (outcome.failure, outcome.why) == ("shape", "the stream ended before the answer did")


def test_silence_is_a_timeout() -> None:
    def silent_server(connection: socket.socket) -> None:
        connection.sendall(HEAD)
        while connection.recv(65536):  # until the client gives up
            pass

    assert outcome_of(silent_server, answer_s=0.1).failure == "timeout"


def test_a_status_is_kept() -> None:
    body = b'{"error": {"message": "too long"}}'
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body)
    outcome = outcome_of(lambda connection: connection.sendall(head + body))
    assert (outcome.failure, outcome.status) == ("status", 400)
    assert "too long" in outcome.why


def test_a_page_is_no_stream() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
    outcome = outcome_of(lambda connection: connection.sendall(page))
    assert (outcome.failure, outcome.status) == ("refused", None)
    assert "event stream" in outcome.why


def test_an_error_inside_a_stream_is_a_failure() -> None:
    data = b'data: {"error": {"message": "engine died"}}\n\n'
    outcome = outcome_of(lambda connection: connection.sendall(HEAD + b"%x\r\n%s\r\n" % (len(data), data)))
    assert outcome.failure == "shape"
    assert "engine died" in outcome.why


def test_failures_are_counted_and_nothing_is_asked_twice(serving: Loopback) -> None:
    serving.switches(0, api="error")

    async def work(side: Side) -> tuple[int, dict[str, int], int]:
        for _ in range(3):
            await side.client.stream(Request("one", side.chat("Hello", tokens=8)))
        tally = side.client.tally
        return tally.requests, tally.failures, tally.connections

    assert asked(serving.api_port, work) == (3, {"status": 3}, 1)


def test_connections_are_used_again(serving: Loopback) -> None:
    async def work(side: Side) -> int:
        for _ in range(5):
            assert (await side.client.stream(Request("one", side.chat("Hello", tokens=8)))).ok
        return side.client.tally.connections

    assert asked(serving.api_port, work) == 1


@pytest.mark.parametrize("streamed", [True, False])
def test_whole_and_streamed_answers_are_the_same(serving: Loopback, streamed: bool) -> None:
    async def work(side: Side) -> Outcome:
        request = Request("one", side.chat("What is 17 + 25?", tokens=64, thinking=True))
        return await (side.client.stream(request) if streamed else side.client.whole(request))

    outcome = asked(serving.api_port, work)
    assert outcome.ok
    assert outcome.reasoning
    assert outcome.completion_tokens == 64
    assert outcome.finish_reason == "length"
