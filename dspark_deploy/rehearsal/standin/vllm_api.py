"""The OpenAI API of the stand-in, streaming included, as far as clients of a served pair use it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import vllm_host as host
from . import vllm_reply
from .vllm_boot import Boot
from .vllm_generate import Engine, Refused, Request, as_json
from .vllm_log import Death

FINGERPRINT = "stand-in: no model ran"
ROUTES = {
    "GET": ("/health", "/ping", "/version", "/metrics", "/load", "/v1/models"),
    "POST": ("/ping", "/tokenize", "/detokenize", "/v1/completions", "/v1/chat/completions"),
}
GUARDED = ("/v1", "/v2", "/inference")  # everything else stays open even with a key, as in the real server


class Server(ThreadingHTTPServer):
    """Bound at once, so that a busy port is noticed before the engine starts; listening only when all is ready."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, boot: Boot) -> None:
        arguments = boot.arguments
        self.boot = boot
        self.engine: Engine
        keys = arguments.api_key or [os.environ.get("VLLM_API_KEY") or ""]
        self.keys = {hashlib.sha256(key.encode()).digest() for key in keys if key}
        bind = host.endpoint(arguments.host or "0.0.0.0", arguments.port)  # noqa: S104  the real default
        super().__init__(bind, Handler, bind_and_activate=False)
        try:
            self.server_bind()
        except OSError as error:
            raise Death(f"OSError: [Errno {error.errno}] {error.strerror}: {bind}") from None

    def server_bind(self) -> None:
        """Bind without asking a name server for this host's name, as the base class would."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.socket.getsockname()[1])


class Handler(BaseHTTPRequestHandler):
    """One client's connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        """Send small answers at once."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:  # http.server calls it by this name
        """Answer, or say why not."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Answer, or say why not."""
        self._answer("POST")

    def _answer(self, verb: str) -> None:
        route = self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if route.startswith(GUARDED) and not self._has_key():
                self._send(401, {"error": "Unauthorized"})
            elif route not in ROUTES[verb]:
                known = any(route in routes for routes in ROUTES.values())
                self._send(405 if known else 404, {"detail": "Method Not Allowed" if known else "Not Found"})
            elif verb == "GET":
                self._get(route)
            else:
                self._post(route, _parsed(body))
        except Refused as refused:
            self._send(refused.status, refused.body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _has_key(self) -> bool:
        keys = self.server.keys
        scheme, _, key = (self.headers.get("Authorization") or "").partition(" ")
        return not keys or (scheme.lower() == "bearer" and hashlib.sha256(key.encode()).digest() in keys)

    def _get(self, route: str) -> None:
        engine = self.server.engine
        if route in {"/health", "/ping"}:
            self._send(503 if engine.dead.is_set() else 200, None)
        elif route == "/version":
            self._send(200, {"version": self.server.boot.family.version, "stand_in": FINGERPRINT})
        elif route == "/load":
            self._send(200, {"server_load": engine.metrics.running})
        elif route == "/metrics":
            self._send(200, engine.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
        else:
            self._send(200, {"object": "list", "data": [self._model(name) for name in engine.names]})

    def _model(self, name: str) -> dict[str, Any]:
        engine, switches = self.server.engine, self.server.boot.switches()
        return {
            "id": switches.get("wrong_model_name") or name,
            "object": "model",
            "created": int(engine.metrics.started),
            "owned_by": "vllm",
            "root": self.server.boot.arguments.model,
            "parent": None,
            "max_model_len": switches.get("wrong_max_model_len") or engine.max_model_len,
        }

    def _post(self, route: str, body: dict[str, Any]) -> None:
        if route == "/ping":
            self._send(200, None)
        elif route == "/tokenize":
            text = vllm_reply.prompt_of(body).encode()
            tokens = [int.from_bytes(text[at : at + 4].ljust(4), "big") for at in range(0, len(text), 4)]
            length = self.server.engine.max_model_len
            self._send(200, {"count": len(tokens), "max_model_len": length, "tokens": tokens, "token_strs": None})
        elif route == "/detokenize":
            text = b"".join(int(token).to_bytes(4, "big") for token in body.get("tokens", ()))
            self._send(200, {"prompt": text.decode(errors="replace").rstrip()})
        else:
            request = self.server.engine.check(body)
            answer = _Answer(request, chat=route.endswith("/chat/completions"))
            if body.get("stream"):
                self._stream(answer, (body.get("stream_options") or {}).get("include_usage", False))
            else:
                self._whole(answer)

    def _whole(self, answer: _Answer) -> None:
        for part, piece in self.server.engine.generate(answer.request):
            answer.take(part, piece)
        self._send(200, answer.document())

    def _stream(self, answer: _Answer, usage: bool) -> None:
        pieces = self.server.engine.generate(answer.request)
        first = next(pieces)  # an engine that can't generate answers with a status, not with half a stream
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in answer.events(first, pieces, usage=usage):
            self._chunk(b"data: " + as_json(event) + b"\n\n")
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def _send(self, status: int, value: object, kind: str = "application/json") -> None:
        content = b"" if value is None else value.encode() if isinstance(value, str) else as_json(value)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002
        """The access log, in the HTTP server's own format."""
        client = f"{self.client_address[0]}:{self.client_address[1]}"
        self.server.boot.log.uvicorn(f'{client} - "{self.requestline}" {int(code)}')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing else is logged."""


class _Answer:
    """A reply on its way out, whole or as events."""

    def __init__(self, request: Request, *, chat: bool) -> None:
        self.request = request
        self.chat = chat
        self.id = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}"
        self.created = int(time.time())
        self.thought = self.text = self.arguments = ""
        self.finish_reason = ""
        self.tokens = 0

    def take(self, part: str, piece: str) -> None:
        """Add what a step yielded."""
        if part == "end":
            self.finish_reason = piece
            return
        self.tokens += piece.count(" ") + (0 if piece.startswith(" ") else 1)
        if part == "thought":
            self.thought += piece
        elif part == "tool":
            self.arguments += piece
        else:
            self.text += piece

    def usage(self) -> dict[str, Any]:
        """Token counts; the real server adds nothing else without being told to."""
        prompt = self.request.prompt_tokens
        return {
            "prompt_tokens": prompt,
            "total_tokens": prompt + self.tokens,
            "completion_tokens": self.tokens,
        }

    def document(self) -> dict[str, Any]:
        """The whole answer."""
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.finish_reason, "logprobs": None}
        if self.chat:
            calls = [self._call(self.arguments)] if self.arguments else []
            message: dict[str, Any] = {"role": "assistant", "content": self.text or None, "tool_calls": calls}
            choice["message"] = {**message, "reasoning": self.thought or None}
        else:
            choice["text"] = self.text
        return {
            **self._envelope("chat.completion" if self.chat else "text_completion", [choice]),
            "usage": self.usage(),
        }

    def events(
        self, first: tuple[str, str], rest: Iterator[tuple[str, str]], *, usage: bool
    ) -> Iterator[dict[str, Any]]:
        """The answer as it is made."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        if self.chat:
            yield self._envelope(kind, [_choice({"delta": {"role": "assistant", "content": ""}})])
        for part, piece in _chained(first, rest):
            self.take(part, piece)
            end = piece if part == "end" else None
            text = "" if part == "end" else piece
            if self.chat:
                delta = {} if end else self._delta(part, text)
                yield self._envelope(kind, [_choice({"delta": delta}, end)])
            else:
                yield self._envelope(kind, [_choice({"text": text}, end)])
        if usage:
            yield {**self._envelope(kind, []), "usage": self.usage()}

    def _delta(self, part: str, text: str) -> dict[str, Any]:
        if part == "tool":
            return {"tool_calls": [{"index": 0, **self._call(text)}]}
        return {"reasoning" if part == "thought" else "content": text}

    def _call(self, arguments: str) -> dict[str, Any]:
        """A tool call, whole or as a part of one: the name goes along with the first part only."""
        whole = self.request.tool
        assert whole is not None  # noqa: S101  no other request yields arguments
        first = arguments == self.arguments
        function = {"name": whole.name, "arguments": arguments} if first else {"arguments": arguments}
        return {"id": f"call-{self.id[-8:]}", "type": "function", "function": function}

    def _envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.request.model,
            "choices": choices,
            "system_fingerprint": FINGERPRINT,
        }


def _choice(content: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, **content, "logprobs": None, "finish_reason": finish_reason}


def _chained(first: tuple[str, str], rest: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    yield first
    yield from rest


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except ValueError as error:
        raise Refused(400, f"JSON decode error: {error}") from None
    if not isinstance(value, dict):
        raise Refused(400, "Input should be a valid dictionary")
    return value
