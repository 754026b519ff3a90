"""The rehearsal's SSH server as a client meets it: the tool's own, and a stranger."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import paramiko
import pytest

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.inventory.host import parse_host
from dspark_deploy.remote.connect import open_host
from dspark_deploy.remote.host import Host

from .pair import RehearsedPair


@pytest.fixture(name="host")
def _host(rehearsed: RehearsedPair) -> Iterator[Host]:
    host = open_host("head", parse_host("rehearsal-head"), ssh_config=rehearsed.folder / "ssh_config")
    yield host
    host.close()


def test_a_command_runs_in_the_sandbox_and_nowhere_else(host: Host, rehearsed: RehearsedPair) -> None:
    script = "pwd; echo $HOME; command -v docker; ls -A; printf %s $DSPARK_NODE_ROOT; exit 7"
    ran = host.run(("sh", "-c", script), timeout_s=10)
    home = rehearsed.home("head")
    assert ran.returncode == 7
    assert ran.stdout.splitlines() == [
        str(home),
        str(home),
        str(home.parent / "bin/docker"),
        ".cache",
        str(home.parent / "root"),
    ]


def test_more_than_one_channel_carries_comes_through_whole(host: Host) -> None:
    ran = host.run(("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"), timeout_s=10)
    assert len(ran.stdout) == 3_000_000


def test_a_program_ends_with_its_channel(host: Host) -> None:
    session = host.start("lock", {"pair": "x", "owner": {}}, timeout_s=10)
    assert session.receive(timeout_s=10)["locked"] is True
    second = host.start("lock", {"pair": "x", "owner": {}}, timeout_s=10)
    assert second.receive(timeout_s=10)["locked"] is False
    session.close()
    for _ in range(100):
        with closing(host.start("lock", {"pair": "x", "owner": {}}, timeout_s=10)) as third:
            if third.receive(timeout_s=10)["locked"]:
                return
    pytest.fail("the first program still holds its lock")


def test_another_key_is_not_let_in(rehearsed: RehearsedPair, tmp_path: Path) -> None:
    paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / "stranger"))
    config = (
        (rehearsed.folder / "ssh_config").read_text().replace(str(rehearsed.folder / "key"), str(tmp_path / "stranger"))
    )
    (tmp_path / "config").write_text(config)
    with pytest.raises(NodeUnreachable, match="login as spark was refused"):
        open_host("head", parse_host("rehearsal-head"), ssh_config=tmp_path / "config")


def test_forwarding_leads_to_loopback_and_nowhere_else(host: Host) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", "192.168.177.11"):  # the node's own fabric address is loopback here
            with closing(host.dial(address, port, timeout_s=5)) as stream:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"hello")
                    assert stream.recv(5) == b"hello"
        with pytest.raises(ConnectionError):
            host.dial("192.0.2.1", port, timeout_s=5)
    with pytest.raises(ConnectionError):
        host.dial("127.0.0.1", port, timeout_s=5)


def test_the_eleventh_session_of_a_connection_is_refused(rehearsed: RehearsedPair) -> None:
    port = re.findall(r'port "(\d+)"', (rehearsed.folder / "ssh_config").read_text())[0]
    with paramiko.Transport(("127.0.0.1", int(port))) as transport:
        transport.connect(username="spark", pkey=paramiko.PKey.from_path(rehearsed.folder / "key"))
        held = [transport.open_session() for _ in range(10)]
        with pytest.raises(paramiko.ChannelException):
            transport.open_session()
        assert len(held) == 10
