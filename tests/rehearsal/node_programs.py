"""What a node runs for its logins, for forker.py: `python -I -S node_programs.py DESCRIPTOR`.

A program comes over its standard input, its length first, as remote/program.py sends it. With `command` in the request,
the words for the node's `docker`, there is none. `node` is the node's folder. A program that starts the node's `docker`
has it forked, too.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import pwd
import re
import shutil
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS, PACKAGE = ROOT / "dspark_deploy/remote/programs", "dspark_deploy.remote.programs"
IMPORTED = (base64, hashlib, pwd, re, struct, threading, time)  # by most programs
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "dspark_deploy/rehearsal")]
forker: Any = importlib.import_module("forker")
docker: Any = importlib.import_module("docker")
Wiring = Iterable[tuple[int, int, int]]


def work(request: dict[str, Any]) -> int:
    """Run what is asked for."""
    node = request["node"]
    if request["command"]:
        return int(docker.main(node, request["command"]))
    for name in ("posix_spawn", "posix_spawnp"):
        setattr(os, name, partial(_spawn, getattr(os, name), node))
    program = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    exec(program, {"__name__": "__main__", "sys": sys, "compile": _compile})  # noqa: S102  as python does it on a node
    return 0


def _spawn(
    spawn: Callable[..., int],
    node: str,
    path: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    file_actions: Wiring = (),
    **more: Any,
) -> int:
    """`spawn`, but for the node's own `docker`."""
    if shutil.which(path) != f"{node}/bin/docker":
        return spawn(path, argv, environment, file_actions=file_actions, **more)
    pid = os.fork()
    if not pid:
        wiring = [(source, target) for _, source, target in file_actions]
        forker.become(wiring, lambda: docker.main(node, argv[1:]))
    return pid


def _compile(text: str, name: str, mode: str) -> CodeType:
    """As the built-in one; what the tool sends is compiled already."""
    return CODE.get((text, name)) or compile(text, name, mode)


def _code() -> dict[tuple[str, str], CodeType]:
    """Of each module of PROGRAMS by its text, under both names that it may be run by."""
    found: dict[tuple[str, str], CodeType] = {}
    for path in PROGRAMS.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)
        assert code is not None
        found |= {(text, name): code for name in (path.stem, f"{PACKAGE}.{path.stem}")}
    return found


CODE = _code()

if __name__ == "__main__":
    forker.serve(socket.socket(fileno=int(sys.argv[1])), work)
