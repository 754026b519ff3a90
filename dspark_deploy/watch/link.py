"""What each node hears of its peer over rails between them: one question a node, both asked at the same time."""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from dspark_deploy.facts.link import Heard, parse_heard
from dspark_deploy.remote.host import Host

NODES = ("head", "worker")
LINK_S = 15  # the program ends itself well before
PORTS = range(49152, 60000)  # above those that servers use; the kernel's own choice begins lower


class Ends(Protocol):
    """Two interfaces that face each other, the head's first. `size` is a full datagram's, in bytes."""

    @property
    def interfaces(self) -> tuple[str, str]: ...
    @property
    def addresses(self) -> tuple[str, str]: ...
    @property
    def size(self) -> int: ...


def listeners(hosts: Mapping[str, Host], rails: Sequence[Ends]) -> dict[str, partial[tuple[Heard, ...]]]:
    """By node, what has it send over every rail and tell what it heard. Both have to be called at once."""
    token, ports = secrets.token_hex(8), random.sample(PORTS, len(rails))
    return {
        node: partial(_listen, hosts[node], {"token": token, "links": list(map(partial(_end, side), rails, ports))})
        for side, node in enumerate(NODES)
    }


def _listen(host: Host, request: Mapping[str, Any]) -> tuple[Heard, ...]:
    return parse_heard(host.call("link", request, timeout_s=LINK_S))


def _end(side: int, rail: Ends, port: int) -> dict[str, Any]:
    return {
        "interface": rail.interfaces[side],
        "address": rail.addresses[side],
        "peer": rail.addresses[1 - side],
        "port": port,
        "size": rail.size,
    }
