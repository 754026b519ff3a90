"""Which interfaces of two nodes face each other, and what the inventory may say about that."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import pytest

from dspark_deploy.errors import CheckRefused, ConfigError
from dspark_deploy.facts.node import Gid, HcaPort, Netdev, NodeFacts
from dspark_deploy.inventory import Fabric, Inventory
from dspark_deploy.plan.fabric import Wire, wire
from tests.samples import node_facts, pair_facts

BOTH = "=rocep1s0f0,roceP2p1s0f0"


def pair(head: Mapping[str, Any] | None = None, worker: Mapping[str, Any] | None = None) -> Inventory:
    return Inventory.model_validate(
        {
            "name": "p",
            "head": {"host": "a", "fabric": Fabric.model_validate(head or {})},
            "worker": {"host": "b", "fabric": Fabric.model_validate(worker or {})},
        }
    )


def netdev(name: str, *addresses: str, up: bool = True) -> Netdev:
    return Netdev(name, up=up, mtu=9000, addresses=tuple(IPv4Interface(each) for each in addresses))


def hca(device: str, name: str, *addresses: str) -> HcaPort:
    gids = [
        Gid(
            3,
            "0000:0000:0000:0000:0000:ffff:" + "{:02x}{:02x}:{:02x}{:02x}".format(*IPv4Address(each).packed),
            "RoCE v2",
            name,
        )
        for each in addresses
    ]
    return HcaPort(device, 1, "ACTIVE", "Ethernet", name, tuple(gids))


def found(
    inventory: Inventory, facts: Mapping[str, NodeFacts] | None = None, *, rdma: bool = True
) -> tuple[Wire, Wire]:
    return wire(inventory, pair_facts() if facts is None else facts, rdma=rdma)


def test_everything_is_found_where_nothing_is_said() -> None:
    assert found(pair()) == (
        Wire("enp1s0f0np0", IPv4Address("192.168.177.11"), BOTH, None),
        Wire("enp1s0f0np0", IPv4Address("192.168.177.12"), BOTH, None),
    )


def test_each_node_has_its_own_names() -> None:
    worker = {
        "netdevs": (netdev("enP7s7", "10.77.0.2/24"), netdev("enP2p1s0f1np1", "192.168.177.12/24")),
        "hca_ports": (hca("roceP2p1s0f1", "enP2p1s0f1np1", "192.168.177.12"),),
    }
    head = {
        "netdevs": (netdev("enP7s7", "10.77.0.1/24"), netdev("enp1s0f0np0", "192.168.177.11/24")),
        "hca_ports": (hca("rocep1s0f0", "enp1s0f0np0", "192.168.177.11"),),
    }
    assert found(pair(), pair_facts(head, worker)) == (
        Wire("enp1s0f0np0", IPv4Address("192.168.177.11"), "=rocep1s0f0", None),
        Wire("enP2p1s0f1np1", IPv4Address("192.168.177.12"), "=roceP2p1s0f1", None),
    )


def test_with_two_cables_only_the_halves_of_one_port_are_selected() -> None:
    def node(number: int) -> dict[str, Any]:
        names = (
            ("enp1s0f0np0", "rocep1s0f0", 1),
            ("enp1s0f1np1", "rocep1s0f1", 2),
            ("enP2p1s0f0np0", "roceP2p1s0f0", 3),
        )
        return {
            "netdevs": tuple(netdev(name, f"10.0.{net}.{number}/24") for name, _, net in names),
            "hca_ports": tuple(hca(device, name, f"10.0.{net}.{number}") for name, device, net in names),
        }

    head, worker = found(pair(), pair_facts(node(1), node(2)))
    assert (head.hca, worker.hca) == (BOTH, BOTH)


def test_what_is_said_narrows_what_is_found() -> None:
    head, worker = found(pair({"interface": "enP2p1s0f0np0"}))
    assert (head.interface, worker.interface) == ("enP2p1s0f0np0", "enP2p1s0f0np0")
    head, worker = found(pair(worker={"address": "192.168.178.12"}))
    assert (head.address, worker.address) == (IPv4Address("192.168.178.11"), IPv4Address("192.168.178.12"))


def test_a_selector_and_an_index_are_taken_as_they_are_said() -> None:
    head, worker = found(pair({"hca": "rocep1s0f0", "gid_index": 3}))
    assert (head.hca, head.gid_index, worker.gid_index) == ("rocep1s0f0", 3, None)


def test_a_pinned_index_that_the_worker_does_not_have_is_refused() -> None:
    with pytest.raises(CheckRefused, match="worker: GID index 3 is not usable") as caught:
        found(pair({"gid_index": 3}, {"gid_index": 3}))
    assert (caught.value.node, caught.value.remedy) == ("worker", "set worker.fabric.gid_index to auto, or to 5")


def test_without_rdma_any_two_interfaces_may_face_each_other() -> None:
    lan = {"netdevs": (netdev("eth0", "10.77.0.1/24"),), "hca_ports": ()}
    other = {"netdevs": (netdev("eth1", "10.77.0.2/24"),), "hca_ports": ()}
    assert found(pair(), pair_facts(lan, other), rdma=False) == (
        Wire("eth0", IPv4Address("10.77.0.1"), None, None),
        Wire("eth1", IPv4Address("10.77.0.2"), None, None),
    )


def test_the_management_lan_is_never_taken_for_the_fabric() -> None:
    on_head = {"netdevs": (netdev("enP7s7", "10.77.0.1/24"), *node_facts("head").netdevs)}
    on_worker = {"netdevs": (netdev("enP7s7", "10.77.0.2/24"), *node_facts("worker").netdevs)}
    said = {"hca": "=roceP2p1s0f0"}
    head, worker = found(pair(said, said), pair_facts(on_head, on_worker))
    assert (head.interface, worker.interface) == ("enP2p1s0f0np0", "enP2p1s0f0np0")


def test_an_interface_that_is_down_carries_nothing() -> None:
    facts = node_facts()
    down = {"netdevs": (netdev("enp1s0f0np0", "192.168.177.11/24", up=False), facts.netdevs[1])}
    head, _ = found(pair(), pair_facts(down))
    assert (head.interface, head.hca) == ("enP2p1s0f0np0", "=roceP2p1s0f0")


@pytest.mark.parametrize(
    "worker",
    [
        {"netdevs": (netdev("enp1s0f0np0", "192.168.9.12/24"),)},
        {"netdevs": (netdev("enp1s0f0np0"),)},
        {"hca_ports": ()},
        {"netdevs": ()},
    ],
)
def test_nodes_that_do_not_face_each_other_are_refused_with_what_there_is(worker: dict[str, Any]) -> None:
    with pytest.raises(CheckRefused, match="no two interfaces of the nodes face each other") as caught:
        found(pair(), pair_facts(worker=worker))
    assert "head has: enp1s0f0np0 up 192.168.177.11/24 rocep1s0f0" in caught.value.why
    assert "worker has: " in caught.value.why


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        ({"interface": "eth9"}, "head: there is no interface eth9"),
        ({"interface": "enp1s0f1np1"}, "head: interface enp1s0f1np1 is down"),
        ({"interface": "bare"}, "head: interface bare has no IPv4 address"),
        ({"address": "192.168.177.99"}, "head: no interface has the address 192.168.177.99"),
        (
            {"interface": "enp1s0f0np0", "address": "192.168.178.11"},
            "head: enp1s0f0np0 has 192.168.177.11, not 192.168.178.11",
        ),
    ],
)
def test_an_inventory_that_the_node_contradicts_is_refused(fabric: dict[str, str], message: str) -> None:
    netdevs = (*node_facts().netdevs, netdev("enp1s0f1np1", up=False), netdev("bare"))
    with pytest.raises(CheckRefused) as caught:
        found(pair(fabric), pair_facts({"netdevs": netdevs}))
    assert (caught.value.message, caught.value.node) == (message, "head")
    assert "enp1s0f0np0 up 192.168.177.11/24 rocep1s0f0; enP2p1s0f0np0 up" in caught.value.why


def test_without_facts_a_complete_inventory_is_enough() -> None:
    head = {"interface": "eth0", "address": "10.0.0.1", "hca": "=mlx5_0", "gid_index": 3}
    worker = {"interface": "eth1", "address": "10.0.0.2", "hca": "^mlx5_9"}
    assert found(pair(head, worker), {}) == (
        Wire("eth0", IPv4Address("10.0.0.1"), "=mlx5_0", 3),
        Wire("eth1", IPv4Address("10.0.0.2"), "^mlx5_9", None),
    )


@pytest.mark.parametrize("facts", [{}, {"head": node_facts()}])
def test_without_facts_of_both_what_is_unsaid_is_named(facts: dict[str, NodeFacts]) -> None:
    complete = {"interface": "eth0", "address": "10.0.0.1", "hca": "=mlx5_0"}
    with pytest.raises(ConfigError) as caught:
        found(pair(complete, {"interface": "eth1"}), facts)
    assert "worker: the inventory leaves worker.fabric.address, worker.fabric.hca to the probe" in caught.value.message
    assert caught.value.node == "worker"
