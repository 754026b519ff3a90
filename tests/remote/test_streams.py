"""Many requests at once, through a node's connection and without one."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import aclosing, closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.served import NoAnswer
from dspark_deploy.remote.streams import BadStatus, Event, Streams, endpoint_streams, served_streams
from tests.fakes import FakeHost
from tests.remote.http_server import answering
from tests.remote.sshd import Sshd
from tests.samples import node_facts


class Handler(BaseHTTPRequestHandler):
    """Streams three events to a POST, tells what it was asked to a GET."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # http.server calls it by this name
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked.get("refuse"):
            self._send(429, b"slow down")
            return
        events = b"".join(b'data: {"n": %d}\n\n' % number for number in range(3))
        self._send(200, events, "text/event-stream")

    def do_GET(self) -> None:
        self._send(200, json.dumps({"path": self.path, "key": self.headers.get("Authorization")}).encode())

    def _send(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """A test's output is its own."""


@pytest.fixture
def server() -> Iterator[int]:
    """A server that keeps its connections open."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield running.server_port
        running.shutdown()


async def read(streams: Streams, document: Any) -> list[Event]:
    """All events of one stream."""
    async with aclosing(streams.events("/x", document, timeout_s=5, sent=lambda _: None)) as events:
        return [event async for event in events]


async def many(streams: Streams) -> tuple[list[list[Event]], int]:
    """Twice ten streams at once, and the connections that were opened for them."""
    async with streams:
        first = await asyncio.gather(*(read(streams, {"n": number}) for number in range(10)))
        await asyncio.gather(*(read(streams, {"n": number}) for number in range(10)))
        return first, streams.connections


def test_streams_at_once_go_through_one_ssh_connection_and_channels_are_used_again(sshd: Sshd, server: int) -> None:
    with closing(sshd.open()) as host:
        found, connections = asyncio.run(many(served_streams(host, "127.0.0.1", server)))
        assert [[event.data for event in each] for each in found] == [['{"n": 0}', '{"n": 1}', '{"n": 2}']] * 10
        assert connections == 10
    assert len(sshd.processes) == 1


def test_a_local_node_needs_no_thread_in_between(local: LocalHost, server: int) -> None:
    before = threading.active_count()
    found, connections = asyncio.run(many(served_streams(local, "127.0.0.1", server)))
    assert (len(found), connections) == (10, 10)
    assert all(event.at_s > 0 for each in found for event in each)
    assert threading.active_count() <= before + 32  # the server's own, and those that dial


def test_a_key_goes_along_and_an_answer_has_any_status(server: int) -> None:
    local = LocalHost("head", SecretStr("sk-one"))

    async def work() -> Any:
        async with served_streams(local, "127.0.0.1", server) as streams:
            with pytest.raises(BadStatus) as raised:
                await read(streams, {"refuse": True})
            assert raised.value.answer.status == 429
            return (await streams.ask("GET", "/v1/models", timeout_s=5)).document()

    assert asyncio.run(work()) == {"path": "/v1/models", "key": "Bearer sk-one"}


def test_it_is_told_when_a_request_is_sent(local: LocalHost, server: int) -> None:
    async def work() -> tuple[list[float], list[Event]]:
        sent: list[float] = []
        async with (
            served_streams(local, "127.0.0.1", server) as streams,
            aclosing(streams.events("/x", {}, timeout_s=5, sent=sent.append)) as events,
        ):
            return sent, [event async for event in events]

    sent, events = asyncio.run(work())
    assert len(sent) == 1
    assert sent[0] < events[0].at_s


def test_nothing_that_listens_is_no_answer() -> None:
    async def work() -> None:
        async with served_streams(FakeHost(node_facts("head")), "127.0.0.1", 1) as streams:
            await streams.ask("GET", "/", timeout_s=1)

    with pytest.raises(NoAnswer) as raised:
        asyncio.run(work())
    assert not raised.value.timed_out


def test_a_lost_node_is_told_as_such(sshd: Sshd) -> None:
    host = sshd.open()
    host.close()

    async def work() -> None:
        async with served_streams(host, "127.0.0.1", 1) as streams:
            await streams.ask("GET", "/", timeout_s=1)

    with pytest.raises(NodeUnreachable):
        asyncio.run(work())


def test_silence_is_a_timeout() -> None:
    async def work(port: int) -> None:
        async with endpoint_streams(f"http://127.0.0.1:{port}") as streams:
            await streams.ask("GET", "/", timeout_s=0.1)

    with answering(lambda *_: (0, "")) as port, pytest.raises(NoAnswer) as raised:
        asyncio.run(work(port))
    assert raised.value.timed_out


def test_a_certificate_that_nobody_vouches_for_is_told_as_tls(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))

    async def work(port: int) -> None:
        async with endpoint_streams(f"https://127.0.0.1:{port}") as streams:
            await streams.ask("GET", "/v1/models", timeout_s=5)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        running.handle_error = lambda *_: None  # type: ignore[method-assign]  # the client hangs up, as it should
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        with pytest.raises(NoAnswer) as raised:
            asyncio.run(work(running.server_port))
        running.shutdown()
    assert raised.value.tls


def self_signed(folder: Path) -> Path:
    """A certificate of 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    plain = serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
