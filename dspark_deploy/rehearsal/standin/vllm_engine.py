"""The stand-in's main line: arguments, boot, and then serving (rank 0) or staying (rank 1)."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence

from . import vllm_host as host
from .vllm_argv import parse
from .vllm_boot import Boot
from .vllm_family import this_family
from .vllm_log import Death, Log
from .vllm_pair import Lonely, Peer


def main(words: Sequence[str]) -> int:
    """Run the command. Returns its exit code."""
    host.end_with_parent()
    family = this_family()
    if list(words[:1]) in (["--version"], ["-v"]):
        print(family.version)  # noqa: T201  a program that runs on its own
        return 0
    if words[:1] != ["serve"]:
        print("usage: vllm {serve} ...", file=sys.stderr)  # noqa: T201
        return 2
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as the real one while it loads
    try:
        arguments = parse(words[1:], family)
        log = Log(arguments.node_rank)
        peer = Peer(arguments) if arguments.nnodes > 1 else Lonely()
        boot = Boot(arguments, family, peer, log)
        _run(boot)
    except Death as death:
        for line in death.lines:
            print(line, file=sys.stderr, flush=True)  # noqa: T201
        return death.code
    return 0


def _run(boot: Boot) -> None:
    if boot.rank or boot.arguments.headless:
        _boot(boot)
        _stay(boot)
    else:
        from .vllm_api import Server  # noqa: PLC0415  a third of a start, and the worker serves nothing
        from .vllm_serving import serve  # noqa: PLC0415  likewise

        server = Server(boot)
        _boot(boot)
        serve(server)


def _boot(boot: Boot) -> None:
    boot.run()
    signal.signal(signal.SIGTERM, _end_now)


def _end_now(number: int, frame: object) -> None:  # noqa: ARG001  a signal handler's signature
    os._exit(0)


def _stay(boot: Boot) -> None:
    """The worker stays for ever, its head gone or not, as the real one does."""
    boot.enter("serving")
    while True:
        time.sleep(3600)
