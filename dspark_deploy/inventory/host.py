"""A node's host as the inventory writes it."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address

from dspark_deploy.strict import Mistake

_SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class HostSpec:
    """Where a node is reached, as the inventory writes it. What is None is for the ssh config to say."""

    host: str  # a name, an alias of the ssh config, an address without brackets; "" where `local`
    user: str | None = None
    port: int | None = None
    local: bool = False

    @property
    def identity(self) -> tuple[bool, str, int]:
        """What tells two hosts apart as far as text can: another login on one machine is the same node."""
        return self.local, self.host.lower(), self.port or _SSH_PORT


def parse_host(text: str) -> HostSpec:
    """Read `spark-a`, `ops@10.0.0.2:2222`, `ops@[fd00::2]:2222`, `ops@fd00::2`, or `local`.

    The login ends at the last `@`. An IPv6 address keeps its zone. Raises Mistake.
    """
    if text == "local":
        return HostSpec("", local=True)
    if any(each.isspace() or each in "/\\'\"" or not each.isprintable() for each in text):
        raise Mistake("it holds a blank, a quote or a slash", remedy="write user@host:port, without ssh://")
    login, at, rest = text.rpartition("@")
    host, port = _split_port(rest)
    if (at and not login) or not host or host.startswith("-") or login.startswith("-"):
        remedy = "write user@host:port, an alias of your ssh config, or local"
        raise Mistake("a host can't be read from it", remedy=remedy)
    return HostSpec(host, login or None, port)


def _split_port(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, bracket, tail = text[1:].partition("]")
        if not bracket or not _is_ipv6(host) or (tail and not tail.startswith(":")):
            raise Mistake("the brackets don't hold an IPv6 address", remedy="write [fd00::2] or [fd00::2]:2222")
        return host, _port(tail[1:]) if tail else None
    if text.count(":") > 1:
        if not _is_ipv6(text):
            raise Mistake("it is neither an IPv6 address nor host:port", remedy="write host:port, or [v6]:port")
        return text, None
    host, colon, port = text.partition(":")
    return host, _port(port) if colon else None


def _port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdigit() else 0
    if not 0 < port < 65536:  # noqa: PLR2004  TCP's own range
        raise Mistake(f"`{text}` is no port", remedy="give a port from 1 to 65535, or leave it out")
    return port


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
