"""A docker command for tests: `system dial-stdio` answers from a script, `compose version` says what it is told."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """\
import base64, json, re, sys
script = json.load(open(__file__ + ".json"))
with open(__file__ + ".calls", "a") as calls:
    calls.write(json.dumps([sys.argv[1:], script["environment"] and dict(__import__("os").environ)]) + "\\n")
if sys.argv[1:3] == ["compose", "version"]:
    sys.exit(print(script["compose"]) if script["compose"] else "docker: 'compose' is not a docker command.")
if script["error"]:
    sys.exit(script["error"])
while line := sys.stdin.buffer.readline():
    headers = {}
    while header := sys.stdin.buffer.readline().decode().strip():
        name, _, value = header.partition(": ")
        headers[name.lower()] = value
    given = sys.stdin.buffer.read(int(headers.get("content-length", 0))).decode()
    method, path, _ = line.decode().split()
    asked = method + " " + re.sub("^/v[0-9.]+", "", path)
    with open(__file__ + ".asked", "a") as log:
        log.write(json.dumps([asked, given and json.loads(given), headers]) + "\\n")
    status, body = script["answers"].get(asked, (404, {"message": "no such thing"}))
    if status == 0:  # never answers
        sys.stdin.buffer.read()
    is_raw = isinstance(body, str) and body.startswith("base64:")
    text = body if isinstance(body, str) else json.dumps(body)
    content = base64.b64decode(text[7:]) if is_raw else text.encode()
    head = b"HTTP/1.1 %d Whatever\\r\\nDate: Tue, 01 Sep 2026 10:00:00 GMT\\r\\n" % status
    if script["chunked"]:
        half = len(content) // 2
        parts = b"".join(b"%x\\r\\n%s\\r\\n" % (len(part), part) for part in (content[:half], content[half:]) if part)
        sys.stdout.buffer.write(head + b"Transfer-Encoding: chunked\\r\\n\\r\\n" + parts)
        if not script["endless"] or not ("follow=1" in path or "/events" in path):
            sys.stdout.buffer.write(b"0\\r\\n\\r\\n")
    else:
        length = b"Content-Length: %d\\r\\n\\r\\n" % len(content)
        sys.stdout.buffer.write(head + length + (b"" if method == "HEAD" else content))
    sys.stdout.buffer.flush()
"""


class StubDocker:
    """What the next docker command will do."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._path = folder / "docker"
        self._path.write_text(f"#!{sys.executable} -IS\n{PROGRAM}")
        self._path.chmod(0o755)
        self.script: dict[str, Any] = {
            "answers": {"GET /version": [200, {"ApiVersion": "1.47", "Version": "28.2.2"}]},
            "compose": "v2.36.0",
            "error": "",
            "chunked": False,
            "environment": False,
            "endless": False,
        }
        self._save()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put it first on PATH."""
        monkeypatch.setenv("PATH", f"{self.folder}:{os.environ['PATH']}")

    def answer(self, asked: str, document: Any, status: int = 200) -> None:
        """What `GET /path` gets; a status of 0 never answers; a text that begins with `base64:` is sent as bytes."""
        self.script["answers"][asked] = [status, document]
        self._save()

    def set(self, **changes: Any) -> None:
        """Change how it behaves: `compose`, `error` (and exit 1), `chunked`, `environment` (kept in `calls`), `endless`
        (a followed log and events never end)."""
        self.script.update(changes)
        self._save()

    def calls(self) -> list[list[Any]]:
        """Every call: its arguments, and its environment where that was asked for."""
        return [json.loads(line) for line in Path(f"{self._path}.calls").read_text().splitlines()]

    def asked(self) -> list[tuple[str, Any, dict[str, str]]]:
        """Every question to the engine: `GET /path`, the document that was sent, the headers in lower case."""
        lines = Path(f"{self._path}.asked").read_text().splitlines()
        return [(what, given, headers) for what, given, headers in map(json.loads, lines)]

    def _save(self) -> None:
        Path(f"{self._path}.json").write_text(json.dumps(self.script))
