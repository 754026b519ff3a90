"""The tool in processes forked off one that has loaded it: its start is most of what a short run costs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

# Everything that the tool imports late.
import docker
import httpx
import prometheus_client.parser

import dspark_deploy.flow.down
import dspark_deploy.flow.history
import dspark_deploy.flow.status
import dspark_deploy.flow.switch
import dspark_deploy.remote.engine
from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.flow.wish import Wish

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
        _be_the_tool(words, folder, environment)
    return pid


def _be_the_tool(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> NoReturn:
    code = 1
    try:
        os.setsid()
        for number, name in ((1, OUT), (2, ERR)):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT, 0o600), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(environment["HOME"])
        code = main(list(words))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
