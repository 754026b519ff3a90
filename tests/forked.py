"""The tool in processes forked off one that has loaded it: its start is most of what a short run costs.

`python -m tests.forked DESCRIPTOR` is such a process, for warm.py.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Everything that the tool imports late.
import docker
import httpx
import prometheus_client.parser

import dspark_deploy.flow.down
import dspark_deploy.flow.history
import dspark_deploy.flow.logs
import dspark_deploy.flow.rehearse
import dspark_deploy.flow.status
import dspark_deploy.flow.supervise
import dspark_deploy.flow.switch
import dspark_deploy.flow.watch
import dspark_deploy.remote.engine
from dspark_deploy.__main__ import main
from dspark_deploy.cli.commands import register_all
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.flow.wish import Wish

from .forker import be, serve

IMPORTED = (docker, httpx, prometheus_client.parser, dspark_deploy.flow, dspark_deploy.remote.engine)
OUT, ERR = "out", "err"  # in a run's folder

register_all()
# What is read once and kept.
bundled_rules()
_CATALOGUE = catalogue_of(Wish(directory=Path(), home=Path()))
_KEPT = ([_CATALOGUE.model(each.model) for each in _CATALOGUE.profiles()], tuple(_CATALOGUE.families()))


def fork_tool(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    """Run one command line in a process of its own, in a session of its own, at home. Returns its id.

    What it writes goes into OUT and ERR in `folder`. The caller must have no thread, and reaps it.
    """
    pid = os.fork()
    if not pid:
        files = [os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600) for name in (OUT, ERR)]
        request = {"cwd": environment["HOME"], "environment": environment, "words": words}
        be(request, [os.open(os.devnull, os.O_RDONLY), *files], _work)
    return pid


def _work(request: dict[str, Any]) -> int:
    sys.argv = ["dspark", *request["words"]]
    main()
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), _work)
