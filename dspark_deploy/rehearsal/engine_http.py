"""A node's dockerd as it is reached: HTTP over a unix socket."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer

from dspark_deploy.rehearsal.engine import API_VERSION, Engine
from dspark_deploy.rehearsal.engine_api import RAW_STREAM, Answer, answer


class EngineServer(ThreadingMixIn, UnixStreamServer):
    """One node's dockerd. `path` may be relative: the length of a socket's path is limited."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, path: str, engine: Engine) -> None:
        self.engine = engine
        super().__init__(path, _Handler)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: EngineServer

    def do_GET(self) -> None:  # http.server calls it by this name
        """Answer one request."""
        self._answer()

    def do_HEAD(self) -> None:
        """Answer one request."""
        self._answer()

    def do_POST(self) -> None:
        """Answer one request."""
        self._answer()

    def do_DELETE(self) -> None:
        """Answer one request."""
        self._answer()

    def address_string(self) -> str:
        """A unix socket's client has no address."""
        return "-"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is logged."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = answer(self.server.engine, self.command, self.path, body)
        try:
            self._send(found)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send(self, found: Answer) -> None:
        self.send_response(found.status)
        self.send_header("Api-Version", API_VERSION)
        self.send_header("Content-Type", found.kind)
        if found.kind == RAW_STREAM:
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.writelines(found.body)
            return
        if isinstance(found.body, Iterator):
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._stream(found.body)
            return
        content = found.content
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _stream(self, pieces: Iterator[bytes]) -> None:
        """Pieces as they come. While there are none, see whether the client is still there."""
        for piece in pieces:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            elif self._client_left():
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")

    def _client_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
