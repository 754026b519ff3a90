"""Pull one image, and tell how far it is. Ends with its session, and the engine then ends the pull.

Request: `reference` (name:tag), `digest` (sha256:…, or None), `or_tag` (pull the tag where the registry has no such
digest), `stall_s` (give up after so long without a byte). Answers: `{"progress": {...}}` now and then, then
`{"end": {...}}`; see facts/pull.py.
"""

from __future__ import annotations

import json
import threading
import time

from dspark_deploy.remote.programs._engine import CREATED, OK, Engine, NoEngine, quoted, refused
from dspark_deploy.remote.programs._frame import Call, end_group, serve
from dspark_deploy.remote.programs._login import login_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

REPORT_S = 0.5
ANSWER_S = 60.0  # the engine says something far more often while it works
READY = ("Pull complete", "Already exists")
UNKNOWN = ("manifest unknown", "not found")


class Pulling:
    """One pull as the engine tells of it."""

    def __init__(self, stall_s: float) -> None:
        self.failed = ""
        self._stall_s = stall_s
        self._layers: dict[str, str] = {}  # id -> what happens to it
        self._sizes: dict[str, tuple[int, int]] = {}  # id -> bytes that came, and all
        self._moved_at = time.monotonic()

    def take(self, line: dict[str, Any]) -> None:
        """One line of the engine's."""
        self.failed = line.get("error") or self.failed
        layer, status = line.get("id"), line.get("status") or ""
        if layer is None or status.startswith("Pulling from"):
            return
        detail = line.get("progressDetail") or {}
        before = self._layers.get(layer), self._sizes.get(layer)
        self._layers[layer] = status
        if status == "Downloading":
            self._sizes[layer] = detail.get("current") or 0, detail.get("total") or 0
        elif status in {"Download complete", "Verifying Checksum"} and layer in self._sizes:
            self._sizes[layer] = (self._sizes[layer][1],) * 2
        waits = status.startswith("Retrying")
        if status == "Extracting" or (not waits and before != (status, self._sizes.get(layer))):
            self._moved_at = time.monotonic()

    def is_stalled(self) -> bool:
        """Whether nothing has moved for too long."""
        return time.monotonic() > self._moved_at + self._stall_s

    def progress(self) -> dict[str, Any]:
        """In bytes and layers."""
        retries = [
            f"layer {layer}: {status}" for layer, status in self._layers.items() if status.startswith("Retrying")
        ]
        return {
            "done_bytes": sum(done for done, _ in self._sizes.values()),
            "total_bytes": sum(total for _, total in self._sizes.values()),
            "layers": len(self._layers),
            "ready": sum(status in READY for status in self._layers.values()),
            "note": f"{retries[0]}: its download broke off" if retries else "",
        }


class Reporter:
    """Tells how far a pull is while the engine is listened to, and gives up where nothing moves."""

    def __init__(self, call: Call, stall_s: float, *, stored_login: bool) -> None:
        self._call = call
        self._stall_s = stall_s
        self._stored_login = stored_login
        self._lock = threading.Lock()
        self.pulling = Pulling(stall_s)

    def begin(self) -> None:
        """From now on."""
        threading.Thread(target=self._report, daemon=True).start()

    def end(self, failed: str = "", **more: bool) -> None:
        """The last answer, and the end of the program."""
        told = {"stalled": False, "no_engine": False, "by_tag": False, **more}
        with self._lock:
            self._call.answer({"progress": self.pulling.progress()})
            self._call.answer({"end": {"failed": failed, "stored_login": self._stored_login, **told}})
            end_group()

    def _report(self) -> None:
        while True:
            time.sleep(REPORT_S)
            if self.pulling.is_stalled():
                note = self.pulling.progress()["note"]
                self.end(f"no byte came for {self._stall_s:g} s{f' ({note})' if note else ''}", stalled=True)
            with self._lock:
                self._call.answer({"progress": self.pulling.progress()})


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    request = call.request
    name, _, tag = request["reference"].rpartition(":")
    login = login_for(request["reference"])
    reporter = Reporter(call, request["stall_s"], stored_login=login is not None)
    reporter.begin()
    engine = Engine(ANSWER_S)
    try:
        engine.version()
        work = Work(engine, reporter.pulling, name, login)
        by_tag = work.pull(tag, request["digest"], or_tag=request["or_tag"])
    except NoEngine as error:
        reporter.end(error.detail, no_engine=True)
    except (OSError, ValueError) as error:
        reporter.end(engine.gone(error).detail, no_engine=True)
    else:
        reporter.end(reporter.pulling.failed, by_tag=by_tag)


class Work:
    """What the engine is asked. What fails stands in `pulling`."""

    def __init__(self, engine: Engine, pulling: Pulling, name: str, login: str | None) -> None:
        self._engine = engine
        self._pulling = pulling
        self._name = name
        self._headers = {"X-Registry-Auth": login} if login else {}

    def pull(self, tag: str, digest: str | None, *, or_tag: bool) -> bool:
        """Whether it was pulled by its tag though a digest was meant."""
        if digest is None:
            self._stream(tag)
            return False
        self._stream(digest)
        failed = self._pulling.failed.lower()
        if not failed:
            self._tag(digest, tag)
        elif or_tag and any(word in failed for word in UNKNOWN):
            self._pulling.failed = ""
            self._stream(tag)
            return True
        return False

    def _stream(self, tag: str) -> None:
        path = f"/images/create?fromImage={quoted(self._name)}&tag={quoted(tag)}"
        response = self._engine.open("POST", path, headers=self._headers)
        if response.status != OK:
            self._pulling.failed = refused(response.status, b"".join(response.parts())).detail
            return
        for line in _lines(response.parts()):
            self._pulling.take(json.loads(line))

    def _tag(self, digest: str, tag: str) -> None:
        """An image that was pulled by its digest has no tag, and compose gets the tag."""
        image, repository = quoted(f"{self._name}@{digest}"), quoted(self._name)
        status, _, body = self._engine.ask("POST", f"/images/{image}/tag?repo={repository}&tag={quoted(tag)}")
        if status not in {CREATED, OK}:
            self._pulling.failed = refused(status, body).detail


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from filter(bytes.strip, whole)
    if rest.strip():
        yield rest


if __name__ == "__main__":
    serve(main)
