"""The base layer: this machine's python3 with its standard library, bash, coreutils, and the libraries they need."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .layers import Tree
from .packages import SYSTEM_PATH

COREUTILS = [
    *("[", "base64", "basename", "cat", "chgrp", "chmod", "chown", "cp", "cut", "date", "dd", "df"),
    *("dirname", "du", "echo", "env", "expr", "false", "head", "hostname", "id", "install", "ln", "ls"),
    *("md5sum", "mkdir", "mktemp", "mv", "nice", "nohup", "nproc", "od", "paste", "printenv", "printf", "ps"),
    *("pwd", "readlink", "realpath", "rm", "rmdir", "seq", "sha256sum", "sleep", "sort", "stat", "stty", "sync"),
    *("tail", "tee", "test", "timeout", "touch", "tr", "true", "tty", "uname", "uniq", "wc", "which"),
    *("whoami", "xargs", "bash", "dash", "find", "grep", "gawk", "mawk", "sed", "tar", "kill", "ldd"),
    *("getent"),
]
LEFT_OUT = re.compile(
    r"(^|/)(test|tests|idlelib|lib2to3|distutils|ensurepip|pydoc_data|turtledemo|tkinter|config-[^/]*)(/|$)"
    r"|_test[a-z]*\.cpython|_codecs_|xxlimited|_xxtest"
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """This machine's /usr/bin/python3, as paths without leading slash."""

    executable: str
    standard_library: str
    site: str


@cache
def interpreter() -> Interpreter:
    """Ask the interpreter where it and its library lie."""
    code = (
        "import os, sys, sysconfig; print(os.path.realpath(sys.executable)); print(sysconfig.get_path('stdlib'));"
        "print(f'/usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/dist-packages')"
    )
    done = subprocess.run(["/usr/bin/python3", "-I", "-c", code], check=True, capture_output=True, text=True)
    return Interpreter(*(line.lstrip("/") for line in done.stdout.split()))


def base_tree() -> Tree:
    """The content of the base layer."""
    python = interpreter()
    tree = Tree()
    tree.links |= {name: f"usr/{name}" for name in ("bin", "sbin", "lib", "lib64")}
    tree.links["usr/bin/python3"] = Path(python.executable).name
    tree.links["usr/bin/sh"] = "dash"
    for program in (f"/{python.executable}", *programs()):
        tree.copies["usr/bin/" + Path(program).name] = Path(program)
    for file in _standard_library():
        tree.copies[str(file).lstrip("/")] = file
    for library in _libraries([*tree.copies.values()]):
        tree.copies[_merged(library)] = library
    for name in ("root", "tmp", "run", "etc/ssl", "usr/sbin", "usr/lib64", "var/tmp"):
        tree.text(f"{name}/.keep", "")
    tree.text("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/nonexistent:/bin/false\n")
    tree.text("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    tree.text("etc/nsswitch.conf", "hosts: files dns\n")
    return tree


def programs() -> Iterator[str]:
    """The programs of COREUTILS that this machine has, by path."""
    for name in COREUTILS:
        if found := shutil.which(name, path=SYSTEM_PATH):
            yield found


def _standard_library() -> Iterator[Path]:
    root = Path("/") / interpreter().standard_library
    for file in sorted(root.rglob("*")):
        if file.is_file() and not LEFT_OUT.search(str(file.relative_to(root))) and ".opt-" not in file.name:
            yield file


def _libraries(files: list[Path]) -> Iterator[Path]:
    """The shared libraries of these files, by the dynamic linker's own word."""
    elf = [str(file) for file in files if file.suffix == ".so" or file.parent.name in {"bin", "sbin"}]
    done = subprocess.run(["ldd", *elf], check=False, capture_output=True, text=True)
    found = set(re.findall(r"(?:=> )?(/\S+) \(0x", done.stdout))
    found |= {str(path) for path in Path("/lib").glob("*-linux-gnu/libnss_files.so*")}
    yield from (Path(path) for path in sorted(found))


def _merged(path: Path) -> str:
    """A path below /usr, also on a machine that knows it as /lib or /lib64."""
    text = str(path).lstrip("/")
    return text if text.startswith("usr/") else f"usr/{text}"
