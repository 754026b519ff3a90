from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface

import pytest

from dspark_deploy.inventory.host import HostSpec
from dspark_deploy.remote.sshconfig import SshTarget, target_of
from dspark_deploy.remote.unreachable import Hop


def target(hostname: str = "10.0.0.2", port: int = 22) -> SshTarget:
    settings = {"hostname": (hostname,), "user": ("ops",), "port": (str(port),)}
    return target_of("worker", HostSpec("spark-b"), settings, "ssh spark-b", {})


def test_a_node_and_a_jump_host_are_told_apart() -> None:
    assert Hop("worker", target(port=2222), is_jump=False).where == "worker (ops@10.0.0.2:2222)"
    assert Hop("worker", target("fd00::9"), is_jump=True).where == "worker: jump host ops@fd00::9"


@pytest.mark.parametrize(
    ("fabric", "looks"),
    [
        (IPv4Address("10.0.0.2"), True),
        (IPv4Address("10.0.0.77"), True),
        (IPv4Address("10.0.1.2"), False),
        (IPv4Interface("10.0.1.2/16"), True),
        (None, False),
    ],
)
def test_a_timeout_says_when_the_address_looks_like_the_fabric_s(
    fabric: IPv4Address | IPv4Interface | None, looks: bool
) -> None:
    error = Hop("worker", target(), is_jump=False).timed_out(10, fabric)
    assert error.message == "worker (ops@10.0.0.2): no answer on port 22 within 10 s"
    assert ("looks like a fabric address" in error.why) is looks
    assert ("management address" in error.remedy) is looks


@pytest.mark.parametrize("hostname", ["spark-b", "fd00::2"])
def test_what_is_no_ipv4_address_never_looks_like_the_fabric_s(hostname: str) -> None:
    error = Hop("worker", target(hostname), is_jump=False).timed_out(10, IPv4Address("10.0.0.2"))
    assert "fabric" not in error.why


def test_every_error_names_the_node_and_what_to_do() -> None:
    hop = Hop("worker", target(), is_jump=False)
    errors = [
        hop.name_unknown("no such name"),
        hop.refused(),
        hop.no_route("No route to host"),
        hop.no_banner(10),
        hop.broken_off("reset"),
        hop.unknown_key("ssh-ed25519", b"key", ca=True),
        hop.revoked_key("ssh-ed25519", b"key"),
        hop.half_authenticated(),
        hop.no_common_algorithm("ciphers"),
        hop.next_unreachable(target(), "connect failed"),
    ]
    for error in errors:
        assert error.message.startswith("worker (ops@10.0.0.2): ")
        assert error.node == "worker"
        assert error.remedy
    assert len({error.message for error in errors}) == len(errors)
