"""A registry that only gives: one image, by tag and by digest, with faults that a test sets while it runs.

A program of its own, standard library only, so that it can run in the bed's LAN: `python registry.py FOLDER ADDRESS`.
FOLDER holds `blobs/DIGEST`, `manifest.json` and `faults.json`, which is read anew at every request.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import random
import sys
import tarfile
import time
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
LAYER_BYTES = 2_000_000
TAG = "pulled"
CHUNK = 65536
CODES = {401: "UNAUTHORIZED", 403: "DENIED", 404: "MANIFEST_UNKNOWN", 429: "TOOMANYREQUESTS"}
WORDS = {401: "authentication required", 403: "denied", 404: "manifest unknown", 429: "too many requests: slow down"}


@dataclass(frozen=True)
class Faults:
    """What is wrong; nothing is health."""

    status: int = 0  # what every manifest is answered with
    bytes_a_second: int = 0  # of each blob
    cut_after: int = 0  # bytes of a blob, then the connection is closed
    cuts: int = 0  # how often; -1: always
    hang_after: int = 0  # bytes of a blob, then silence


def write_image(folder: Path, *, layers: int = 2) -> str:
    """Make an image of random layers. Returns its digest."""
    (folder / "blobs").mkdir(parents=True)
    diff_ids, descriptors = [], []
    for number in range(layers):
        layer = _layer(number)
        diff_ids.append(_digest(layer))
        descriptors.append(_blob(folder, gzip.compress(layer, 1), LAYER))
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": ["/bin/true"]},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [{"created_by": "bed"} for _ in diff_ids],
    }
    described = _blob(folder, json.dumps(config).encode(), CONFIG)
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": descriptors}
    content = json.dumps(manifest).encode()
    (folder / "manifest.json").write_bytes(content)
    set_faults(folder)
    return _digest(content)


def set_faults(folder: Path, **faults: int) -> None:
    """From the next request on."""
    (folder / "faults.json").write_text(json.dumps(asdict(Faults(**faults))))


def _layer(number: int) -> bytes:
    """A file that does not compress, so that the sizes are known."""
    content = random.Random(number).randbytes(LAYER_BYTES)  # noqa: S311  the same bytes each time, and no secret
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            entry = tarfile.TarInfo(f"file-{number}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()


def _blob(folder: Path, content: bytes, kind: str) -> dict[str, Any]:
    digest = _digest(content)
    (folder / "blobs" / digest).write_bytes(content)
    return {"mediaType": kind, "size": len(content), "digest": digest}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    folder: Path
    cuts = 0  # that were made

    def do_GET(self) -> None:
        """Answer, or fail as the test wants it."""
        faults = Faults(**json.loads((self.folder / "faults.json").read_text()))
        *_, kind, name = self.path.split("/")
        if kind == "manifests":
            self._manifest(name, faults)
        elif kind == "blobs":
            self._blob(name, faults)
        else:  # /v2/
            self._send(200, b"{}", "application/json")

    do_HEAD = do_GET  # noqa: N815  http.server calls it by this name

    def _manifest(self, name: str, faults: Faults) -> None:
        content = (self.folder / "manifest.json").read_bytes()
        status = faults.status or (200 if name in {TAG, _digest(content)} else 404)
        if status == 200:
            self._send(200, content, MANIFEST)
            return
        error = {"errors": [{"code": CODES[status], "message": WORDS[status]}]}
        self._send(status, json.dumps(error).encode(), "application/json")

    def _blob(self, name: str, faults: Faults) -> None:
        content = (self.folder / "blobs" / name).read_bytes()
        is_layer = len(content) > LAYER_BYTES // 2
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        total, content = len(content), content[begin:]  # a download that broke off goes on
        part = {"Content-Range": f"bytes {begin}-{total - 1}/{total}"} if begin else {}
        self._head(206 if begin else 200, content, "application/octet-stream", **part)
        limit = len(content)
        if is_layer and (faults.cuts < 0 or Handler.cuts < faults.cuts):
            Handler.cuts += 1
            limit = faults.cut_after
        for start in range(0, limit, CHUNK):
            if faults.hang_after and is_layer and start >= faults.hang_after:
                time.sleep(3600)
            self.wfile.write(content[start : min(start + CHUNK, limit)])
            if faults.bytes_a_second:
                time.sleep(CHUNK / faults.bytes_a_second)
        if limit < len(content):
            self.close_connection = True

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self._head(status, content, kind)
        if self.command != "HEAD":
            self.wfile.write(content)

    def _head(self, status: int, content: bytes, kind: str, **more: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Docker-Content-Digest", _digest(content))
        for name, value in more.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """A test's output is its own."""


def main() -> None:
    """Serve until it is ended."""
    Handler.folder = Path(sys.argv[1])
    server = ThreadingHTTPServer((sys.argv[2], 80), Handler)
    server.daemon_threads = True
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
