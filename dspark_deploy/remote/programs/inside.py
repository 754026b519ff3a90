"""Runs in a rank's container, on the image's own Python: what its mounted files and its vllm package hold.

Argument: JSON with `package` (the folder of the vllm package), `mounts` (files and folders), `limit_s`.
Prints JSON: `package` (path below it -> SHA-256, null where there is none) and `mounted` (path -> SHA-256, or null
where it can't be read). Nothing in a folder `__pycache__` counts. It ends itself after `limit_s`, and steps back behind
what serves.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CACHE = "__pycache__"
READ_SIZE = 1 << 20
MOST_FILES = 50_000  # a whole vLLM has some 4000
LOWEST_PRIORITY = 19


def main(request: dict[str, Any]) -> None:
    """See the module."""
    signal.alarm(int(request["limit_s"]))
    os.nice(LOWEST_PRIORITY)
    package = request["package"]
    tree = {os.path.relpath(path, package): sha256(path) for path in files_below(package)}
    mounted = {path: sha256(path) for mount in request["mounts"] for path in files_below(mount)}
    sys.stdout.write(json.dumps({"package": tree if os.path.isdir(package) else None, "mounted": mounted}))


def files_below(path: str) -> Iterator[str]:
    """The file itself, or every plain file below a folder, links to files included."""
    if not os.path.isdir(path):
        yield path
        return
    found = 0
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name != CACHE)
        plain = [each for each in (os.path.join(folder, name) for name in sorted(files)) if os.path.isfile(each)]
        found += len(plain)
        if found > MOST_FILES:
            sys.exit(f"{path} holds more than {MOST_FILES} files")
        yield from plain


def sha256(path: str) -> str | None:
    """A file's hash as hex digits; None where it can't be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while part := file.read(READ_SIZE):
                digest.update(part)
    except OSError:
        return None
    return digest.hexdigest()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
