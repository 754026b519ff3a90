"""Two ends of a link, on loopback: what comes is told, whoever begins; nothing is waited for without a limit."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from dspark_deploy.facts.link import Heard, parse_heard
from dspark_deploy.remote.local import LocalHost

HERE, THERE = "127.0.0.1", "127.0.0.2"
TOKEN = "0123456789abcdef"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((THERE, 0))
        port: int = probe.getsockname()[1]
        return port


def end(address: str, peer: str, port: int, size: int = 8972) -> dict[str, Any]:
    return {"interface": "lo", "address": address, "peer": peer, "port": port, "size": size}


def ask(local: LocalHost, *ends: dict[str, Any], **more: Any) -> tuple[Heard, ...]:
    return parse_heard(local.call("link", {"token": TOKEN, "links": list(ends), **more}, timeout_s=15))


def test_both_ends_hear_both_sizes_whoever_begins(local: LocalHost) -> None:
    ports = free_port(), free_port()
    heard: dict[str, tuple[Heard, ...]] = {}

    def other() -> None:
        heard["there"] = ask(local, *(end(THERE, HERE, port) for port in ports))

    thread = threading.Timer(0.2, other)
    thread.start()
    heard["here"] = ask(local, *(end(HERE, THERE, port) for port in ports))
    thread.join()
    assert [(each.small, each.full, each.problem) for ends in heard.values() for each in ends] == [(True, True, "")] * 4


def test_a_peer_of_which_only_small_ones_come_is_told_soon(local: LocalHost) -> None:
    """The full size of one end is not what the other sends: as on a link that carries less."""
    port = free_port()
    heard: list[Heard] = []
    thread = threading.Thread(target=lambda: heard.extend(ask(local, end(THERE, HERE, port, size=20_000))))
    thread.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind((HERE, port))
        peer.connect((THERE, port))
        while thread.is_alive():
            try:
                peer.send(TOKEN.ljust(32, ".").encode())
            except ConnectionRefusedError:
                continue
    assert [(each.small, each.full) for each in heard] == [(True, False)]


def test_silence_has_a_limit(local: LocalHost) -> None:
    (heard,) = ask(local, end(HERE, THERE, free_port()), limit_s=0.2)
    assert (heard.small, heard.full, heard.problem) == (False, False, "")


def test_strangers_are_not_heard(local: LocalHost) -> None:
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind((THERE, port))
        stop = threading.Event()

        def talk() -> None:
            while not stop.wait(0.01):
                stranger.sendto(b"another token".ljust(32), (HERE, port))

        thread = threading.Thread(target=talk)
        thread.start()
        (heard,) = ask(local, end(HERE, THERE, port), limit_s=0.5)
        stop.set()
        thread.join()
    assert not heard.small


@pytest.mark.parametrize("address", ["192.0.2.1", "127.0.0.1"])
def test_an_end_that_can_not_send_says_why(local: LocalHost, address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((HERE, 0))
        (heard,) = ask(local, end(address, THERE, taken.getsockname()[1]))
    assert heard.problem in {"Cannot assign requested address", "Address already in use"}
