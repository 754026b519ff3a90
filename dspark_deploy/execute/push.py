"""A node's half of a release travels as one tar stream, and appears under its id whole or not at all."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping

from dspark_deploy.remote.host import Host
from dspark_deploy.render.release import File

PUSH_S = 60


def push_release(host: Host, pair: str, release: str, files: Mapping[str, File], keep: tuple[str, ...]) -> int:
    """Make the node keep `files` under `release`. Returns the bytes sent; raises StepFailed.

    The node checks every hash before it renames; `keep` are ids that its pruning must leave alone.
    """
    archive = _archive(files)
    hashes = {name: hashlib.sha256(file.data).hexdigest() for name, file in files.items()}
    request = {"pair": pair, "release": release, "files": hashes, "keep": list(keep)}
    host.call("receive", request, timeout_s=PUSH_S, payload=archive)
    return len(archive)


def _archive(files: Mapping[str, File]) -> bytes:
    """A tar with nothing of this machine in it: no owner, no time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, file in sorted(files.items()):
            content = file.data
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), file.mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
