"""NCCL's HCA selectors and the GID index that the selected ports share, on one made-up node.

rocep1s0f0 (enp1s0f0np0, 10.0.0.1) and roceP2p1s0f0 (enP2p1s0f0np0, 10.0.1.1) are live, each with its RoCE v2 IPv4 GID
at index 3; their siblings of the second port are down.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Interface

import pytest

from dspark_deploy.errors import CheckRefused, ExitCode
from dspark_deploy.facts.node import Gid, HcaPort, Netdev, NodeFacts
from dspark_deploy.plan.gid import Selector, Token, parse_selector, prove_gid, selected_ports, usable_indexes
from tests.samples import node_facts

FIRST, SECOND = "rocep1s0f0", "roceP2p1s0f0"
ADDRESS = IPv4Address("10.0.0.1")
ADDRESSES = {"enp1s0f0np0": "10.0.0.1", "enP2p1s0f0np0": "10.0.1.1"}
MAPPED = {"enp1s0f0np0": "0a00:0001", "enP2p1s0f0np0": "0a00:0101"}


def gid(index: int, netdev: str, tail: str | None = None, kind: str = "RoCE v2") -> Gid:
    return Gid(index, f"0000:0000:0000:0000:0000:ffff:{tail or MAPPED[netdev]}", kind, netdev)


def port(device: str, netdev: str, indexes: Sequence[int] = (3,), state: str | None = "ACTIVE") -> HcaPort:
    return HcaPort(device, 1, state, "Ethernet", netdev, tuple(gid(index, netdev) for index in indexes))


def node(first: Sequence[int] = (3,), second: Sequence[int] = (3,)) -> NodeFacts:
    netdevs = tuple(
        Netdev(name, up=True, mtu=9000, addresses=(IPv4Interface(f"{address}/24"),))
        for name, address in ADDRESSES.items()
    )
    down = (
        HcaPort("rocep1s0f1", 1, "DOWN", "Ethernet", "enp1s0f1np1", ()),
        HcaPort("roceP2p1s0f1", 1, "DOWN", "Ethernet", "enP2p1s0f1np1", ()),
    )
    live = (port(FIRST, "enp1s0f0np0", first), port(SECOND, "enP2p1s0f0np0", second))
    return node_facts(netdevs=netdevs, hca_ports=(*live, *down))


def selected(selector: str) -> list[str]:
    return [f"{each.device}:{each.port}" for each in selected_ports(node().hca_ports, selector)]


BOTH = [f"{FIRST}:1", f"{SECOND}:1"]


@pytest.mark.parametrize(
    ("selector", "ports"),
    [
        (FIRST, BOTH[:1]),
        (f"={FIRST}", BOTH[:1]),
        (f"={FIRST},{SECOND}", BOTH),
        ("roce", BOTH),
        ("", BOTH),
        (f"{FIRST}:1", BOTH[:1]),
        (f"{FIRST}:", BOTH[:1]),
        (f"{FIRST}:01", BOTH[:1]),
        (f"{FIRST}: 1", BOTH[:1]),
        (f"{FIRST}:+1x", BOTH[:1]),
        (f"{FIRST}:1:0:0", BOTH[:1]),
        (f"^{FIRST}", BOTH[1:]),
        (f"^={FIRST}", BOTH[1:]),
        ("^mlx5_9", BOTH),
        (f",,{FIRST},:1", BOTH[:1]),
    ],
)
def test_a_selector_takes_its_live_ports(selector: str, ports: list[str]) -> None:
    assert selected(selector) == ports
    assert prove_gid(node(), selector, ADDRESS, None) == 3


@pytest.mark.parametrize(
    "selector", [f"{FIRST}:2", f"{FIRST}:abc", f"{FIRST}:{'1' * 20}", f"{FIRST}:-1", "=roce", "rocep1s0f1", "rocep9s9"]
)
def test_a_selector_that_takes_no_live_port_is_refused_with_what_there_is(selector: str) -> None:
    with pytest.raises(CheckRefused) as caught:
        prove_gid(node(), selector, ADDRESS, None)
    assert caught.value.code is ExitCode.REFUSED
    assert caught.value.node == "head"
    assert caught.value.message == f"head: no active HCA port matches {selector}"
    assert f"{FIRST}:1 ACTIVE" in caught.value.why
    assert "rocep1s0f1:1 DOWN" in caught.value.why


@pytest.mark.parametrize(
    ("text", "number"), [("08", 8), ("010", 10), ("abc", 0), ("-2", -2), ("000000000012", 12), ("1234567890", -1)]
)
def test_a_port_is_read_as_c_reads_it(text: str, number: int) -> None:
    assert parse_selector(f"mlx5_0:{text}").tokens == (Token("mlx5_0", number),)


def test_only_the_first_tokens_and_bytes_count() -> None:
    names = [f"d{number}" for number in range(40)]
    assert parse_selector(",".join(names)) == Selector(
        exclude=False, exact=False, tokens=tuple(Token(name, None) for name in names[:32])
    )
    assert parse_selector("x" * 80).tokens == (Token("x" * 63, None),)


def test_a_port_that_cannot_be_read_counts_as_live() -> None:
    unreadable = HcaPort("mlx5_0", 1, None, None, None, ())
    infiniband = HcaPort("mlx5_1", 1, "ACTIVE", "InfiniBand", None, ())
    other = HcaPort("mlx5_2", 1, "ACTIVE", "Unspecified", None, ())
    assert selected_ports((unreadable, infiniband, other), "mlx5") == (unreadable, infiniband)


def test_no_more_than_32_ports_are_looked_at() -> None:
    ports = [HcaPort(f"mlx5_{number}", 1, "ACTIVE", "Ethernet", None, ()) for number in range(40)]
    assert len(selected_ports(ports, "mlx5")) == 32


def test_an_index_is_usable_for_roce_v2_and_an_address_of_the_node() -> None:
    netdev = "enp1s0f0np0"
    gids = (
        Gid(0, "fe80:0000:0000:0000:0000:00ff:fe00:0001", "IB/RoCE v1", netdev),
        Gid(1, "fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2", netdev),
        gid(2, netdev, kind="IB/RoCE v1"),
        gid(3, netdev),
        gid(4, netdev, "0a00:0063"),  # an address that this netdev doesn't have
        gid(5, "enP2p1s0f0np0"),  # another netdev's own address
        Gid(6, "0000:0000:0000:0000:0000:ffff:0a00:0001", None, netdev),
    )
    table = usable_indexes(HcaPort(FIRST, 1, "ACTIVE", "Ethernet", netdev, gids), node(), ADDRESS)
    assert table == {3: True, 5: False}


@pytest.mark.parametrize(
    ("selector", "first", "second", "index"),
    [
        (f"={FIRST},{SECOND}", (3, 5), (5,), 5),
        (f"={FIRST}", (3, 5), (3,), 3),
        (f"={FIRST},{SECOND}", (3, 5), (3, 5), 3),
    ],
)
def test_the_lowest_common_index_is_found(selector: str, first: list[int], second: list[int], index: int) -> None:
    assert prove_gid(node(first, second), selector, ADDRESS, None) == index


def test_an_index_that_carries_the_ranks_own_address_beats_a_lower_one() -> None:
    netdev, other = "enp1s0f0np0", "10.0.0.9"
    facts = node((), (3, 5))
    two = Netdev(netdev, up=True, mtu=9000, addresses=(IPv4Interface(f"{other}/24"), IPv4Interface("10.0.0.1/24")))
    first = HcaPort(FIRST, 1, "ACTIVE", "Ethernet", netdev, (gid(3, netdev, "0a00:0009"), gid(5, netdev)))
    facts = node_facts(netdevs=(two, facts.netdevs[1]), hca_ports=(first, facts.hca_ports[1]))
    assert prove_gid(facts, f"={FIRST},{SECOND}", ADDRESS, None) == 5


@pytest.mark.parametrize(("first", "second"), [((3,), (5,)), ((3,), ())])
def test_ports_without_a_common_index_are_refused_with_their_tables(first: list[int], second: list[int]) -> None:
    with pytest.raises(CheckRefused, match="share no usable RoCE v2 GID index") as caught:
        prove_gid(node(first, second), f"={FIRST},{SECOND}", ADDRESS, None)
    assert f"{FIRST}:1 {list(first)}; {SECOND}:1 {list(second)}" in caught.value.why
    assert "head.fabric.hca" in caught.value.remedy


def test_a_pinned_index_is_held_against_each_port() -> None:
    both = f"={FIRST},{SECOND}"
    assert prove_gid(node((3, 5), (3, 5)), both, ADDRESS, 5) == 5
    with pytest.raises(CheckRefused, match="GID index 3 is not usable on each port") as caught:
        prove_gid(node((3, 5), (5,)), both, ADDRESS, 3)
    assert caught.value.remedy == "set head.fabric.gid_index to auto, or to 5"


def test_a_node_without_rdma_says_why() -> None:
    facts = node_facts(hca_ports=(), missing={"hca_ports": "/sys/class/infiniband: no such folder"})
    with pytest.raises(CheckRefused) as caught:
        prove_gid(facts, FIRST, ADDRESS, None)
    assert caught.value.why == "there is: no RDMA device (/sys/class/infiniband: no such folder)"
