"""Opening the SSH connection to a node, hop by hop, with one precise error for whatever stops it."""

from __future__ import annotations

import errno
import logging
import queue
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import paramiko
from fabric import Config, Connection  # type: ignore[import-untyped]  # fabric ships no types
from paramiko.auth_strategy import AuthFailure

from dspark_deploy.errors import DsparkError
from dspark_deploy.remote.identity import Identities
from dspark_deploy.remote.knownhosts import add_key, judge, known_keys
from dspark_deploy.remote.sshconfig import ALGORITHMS, SshTarget
from dspark_deploy.remote.unreachable import Hop

CONNECT_S = 10.0  # unless the ssh config has a ConnectTimeout
BANNER_S = 10.0
AUTH_S = 10.0  # one key
CHANNEL_S = 10.0
QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux alone has it
KEY_ALGORITHMS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}  # of a key type; others are named like their type

# The library logs what it also raises; without a handler of its own that would end on the user's terminal.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Link:
    """An open, authenticated connection to a node, and those of the jump hosts that it runs through."""

    connections: tuple[Any, ...]  # of fabric; the last one is the node's
    target: SshTarget

    @property
    def transport(self) -> paramiko.Transport:
        """The node's own."""
        transport = self.connections[-1].transport
        assert isinstance(transport, paramiko.Transport)  # noqa: S101  fabric has no types; it sets this in open()
        return transport

    def close(self) -> None:
        """End all of it, the node's connection first."""
        for connection in reversed(self.connections):
            connection.close()


def open_link(
    node: str,
    route: Sequence[SshTarget],
    *,
    accept_new_host_keys: bool = False,
    fabric_address: IPv4Address | IPv4Interface | None = None,
) -> Link:
    """Connect to each machine of `route` through the one before. Raises NodeUnreachable, naming the hop."""
    connections: list[Any] = []
    try:
        for index, target in enumerate(route):
            hop = Hop(node, target, is_jump=index < len(route) - 1)
            sock: socket.socket | paramiko.Channel
            if connections:
                before = Hop(node, route[index - 1], is_jump=True)
                sock = _through(connections[-1].transport, before, target)
            else:
                sock = _dial(hop, fabric_address)
            connections.append(_connect(hop, sock, accept_new_host_keys))
    except DsparkError:
        for connection in reversed(connections):
            connection.close()
        raise
    return Link(tuple(connections), route[-1])


def _dial(hop: Hop, fabric_address: IPv4Address | IPv4Interface | None) -> socket.socket:
    """A TCP connection to the first machine: the outermost real socket."""
    target = hop.target
    limit_s = target.connect_timeout_s or CONNECT_S
    deadline = time.monotonic() + limit_s
    addresses = _resolve(hop, limit_s)
    error: OSError | None = None
    for index, (family, address) in enumerate(addresses):
        share_s = max(deadline - time.monotonic(), 0.1) / (len(addresses) - index)
        sock = PromptSocket(family, socket.SOCK_STREAM)
        try:
            if target.bind_address:
                sock.bind((target.bind_address, 0))
            sock.settimeout(share_s)
            sock.connect(address)
        except OSError as failed:
            sock.close()
            error = failed
            continue
        return sock
    if isinstance(error, ConnectionRefusedError):
        raise hop.refused() from error
    if isinstance(error, TimeoutError) or (error and error.errno == errno.ETIMEDOUT):
        raise hop.timed_out(limit_s, fabric_address) from error
    raise hop.no_route(error.strerror or str(error) if error else "it has no address") from error


class PromptSocket(socket.socket):
    """A TCP socket on which no answer is held back, neither by us nor by the other side.

    Ours: without TCP_NODELAY a command on the open connection costs 44 ms, with it 3 ms. Theirs: sshd itself sets
    TCP_NODELAY only once a session has begun, so its first answers wait until what it sent before is acknowledged,
    which the kernel here would put off for 40 ms.
    """

    def __init__(self, family: int, kind: int) -> None:
        super().__init__(family, kind)
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """See socket. What was read is acknowledged at once; the kernel forgets the wish, so it is said each time."""
        data = super().recv(size, flags)
        if QUICKACK is not None:
            self.setsockopt(socket.IPPROTO_TCP, QUICKACK, 1)
        return data


def _resolve(hop: Hop, limit_s: float) -> list[tuple[socket.AddressFamily, Any]]:
    """The machine's addresses. The system's resolver knows no time limit, so it works in a thread that may be left."""
    target = hop.target
    outcome: queue.SimpleQueue[list[tuple[socket.AddressFamily, Any]] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(target.hostname, target.port, target.family, socket.SOCK_STREAM)
            outcome.put([(family, address) for family, _, _, _, address in found])
        except OSError as error:
            outcome.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        found = outcome.get(timeout=limit_s)
    except queue.Empty as error:
        raise hop.name_unknown(f"no answer of the resolver within {limit_s:g} s") from error
    if isinstance(found, OSError):
        raise hop.name_unknown(found.strerror or str(found)) from found
    return found


def _through(transport: paramiko.Transport, before: Hop, target: SshTarget) -> paramiko.Channel:
    limit_s = target.connect_timeout_s or CONNECT_S
    try:
        return transport.open_channel("direct-tcpip", (target.hostname, target.port), ("127.0.0.1", 0), timeout=limit_s)
    except paramiko.ChannelException as error:
        raise before.next_unreachable(target, error.text.lower()) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise before.next_unreachable(target, f"no answer within {limit_s:g} s") from error


def _connect(hop: Hop, sock: socket.socket | paramiko.Channel, accept_new_host_keys: bool) -> Any:
    """Key exchange, host key and login on an open socket. Returns the fabric connection."""
    target = hop.target
    host_key = HostKeyCheck(hop, accept_new_host_keys)
    connection = Connection(
        host=target.hostname,
        user=target.user,
        port=target.port,
        connect_timeout=None,
        # Lazy, and with an empty ssh config: what holds was asked of OpenSSH, and no other file has a say.
        config=Config(lazy=True, ssh_config=paramiko.SSHConfig()),
        connect_kwargs={
            "sock": sock,
            "banner_timeout": BANNER_S,
            "auth_timeout": AUTH_S,
            "channel_timeout": CHANNEL_S,
            "compress": target.compression,
            "auth_strategy": Identities(target),
            "transport_factory": host_key.transport,
        },
    )
    connection.client.set_missing_host_key_policy(host_key)
    try:
        connection.open()
    except DsparkError:
        connection.client.close()
        raise
    except AuthFailure as error:
        connection.client.close()
        raise hop.not_authenticated(error) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        connection.client.close()
        raise _broken_off(hop, error) from error
    if not connection.transport.is_authenticated():
        connection.client.close()
        raise hop.half_authenticated()
    return connection


def _broken_off(hop: Hop, error: Exception) -> DsparkError:
    if "banner" in str(error).lower():
        return hop.no_banner(BANNER_S)
    return hop.broken_off(str(error) or type(error).__name__)


class HostKeyCheck(paramiko.MissingHostKeyPolicy):
    """Judges the key that a machine offers by the known-hosts files, and asks it for a key that they know.

    The client itself is given no known keys, so that every key comes here: the library can't hold two keys of one
    type for a host, nor patterns, nor @revoked lines.
    """

    def __init__(self, hop: Hop, accept_new: bool) -> None:
        self._hop = hop
        self._accept_new = accept_new
        target = hop.target
        self._known = known_keys(target.known_hosts, target.known_name)
        self._without_port = (
            () if target.known_name == target.hostname else known_keys(target.known_hosts, target.hostname)
        )

    def transport(self, sock: Any, disabled_algorithms: Any = None) -> paramiko.Transport:
        """A transport that prefers what the ssh config allows, and host keys of a type that is known."""
        # Not ServiceRequestingTransport: it sleeps for 100 ms before the first login attempt.
        transport = paramiko.Transport(sock, disabled_algorithms=disabled_algorithms)
        options = transport.get_security_options()
        wanted = self._hop.target.algorithms
        for directive, option in zip(ALGORITHMS, ("kex", "ciphers", "digests", "key_types"), strict=True):
            if directive in wanted:
                allowed = [name for name in wanted[directive] if name in getattr(options, option)]
                if not allowed:
                    raise self._hop.no_common_algorithm(directive)
                setattr(options, option, allowed)
        types = {name for key in self._known if not key.marker for name in KEY_ALGORITHMS.get(key.type, (key.type,))}
        options.key_types = sorted(options.key_types, key=lambda name: name not in types)
        return transport

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """See MissingHostKeyPolicy. Raises NodeUnreachable unless the key is known, or new and to be accepted."""
        del client, hostname  # the target's own name decides: HostKeyAlias
        target, blob = self._hop.target, key.asbytes()
        match judge(blob, self._known, self._without_port):
            case "known":
                return
            case "revoked":
                raise self._hop.revoked_key(key.get_name(), blob)
            case "changed":
                known = [each for each in self._known if not each.marker]
                raise self._hop.changed_key(key.get_name(), blob, known)
            case "unknown":
                if not (self._accept_new and target.known_hosts):
                    by_authority = any(each.marker == "@cert-authority" for each in self._known)
                    raise self._hop.unknown_key(key.get_name(), blob, by_authority)
                path, name = target.known_hosts[0], target.known_name
                try:
                    add_key(path, name, key.get_name(), blob, hashed=target.hash_known_hosts)
                except OSError as error:
                    raise self._hop.unkept_key(path, error.strerror or str(error)) from error
