"""Which interfaces of two nodes face each other, which way is the best, and what is said where there is none."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import pytest

from dspark_deploy.errors import CheckRefused
from dspark_deploy.facts.link import Heard
from dspark_deploy.facts.node import Gid, HcaPort, Netdev, NodeFacts
from dspark_deploy.plan.draft import fabric_values, wiring_notes
from dspark_deploy.plan.pairing import Candidate, Facing, candidates, heard_over, selector, usable
from dspark_deploy.plan.unjoined import why_silent, why_unjoined
from tests.samples import pair_facts

BOTH = "=rocep1s0f0,roceP2p1s0f0"
LAN = "enP7s7"
Ports = dict[str, tuple[str, str | None]]  # interface -> RDMA device, address


def node(
    ports: Ports, *, lan: str = "10.77.0.1/24", down: tuple[str, ...] = (), index: int = 3, mtu: int = 9000
) -> dict[str, Any]:
    """Changes to a node's facts: those ports, and a management LAN without an RDMA device."""
    netdevs = [Netdev(LAN, up=True, mtu=1500, addresses=(IPv4Interface(lan),))]
    devices = []
    for name, (device, address) in ports.items():
        addresses = (IPv4Interface(address),) if address else ()
        netdevs.append(Netdev(name, up=name not in down, mtu=mtu, addresses=addresses))
        gids = tuple(_gid(index, each.ip, name) for each in addresses)
        devices.append(HcaPort(device, 1, "DOWN" if name in down else "ACTIVE", "Ethernet", name, gids))
    # As a probe lists them: by name, capitals first.
    return {
        "netdevs": tuple(sorted(netdevs, key=lambda each: each.name)),
        "hca_ports": tuple(sorted(devices, key=lambda each: each.device)),
    }


def _gid(index: int, address: IPv4Address, netdev: str) -> Gid:
    digits = address.packed.hex()
    return Gid(index, f"0000:0000:0000:0000:0000:ffff:{digits[:4]}:{digits[4:]}", "RoCE v2", netdev)


def one_port(number: int, *, first: str | None = "192.168.177", second: str | None = "192.168.178") -> Ports:
    """Both halves of the first port."""
    return {
        "enp1s0f0np0": ("rocep1s0f0", first and f"{first}.{number}/24"),
        "enP2p1s0f0np0": ("roceP2p1s0f0", second and f"{second}.{number}/24"),
    }


def second_port(number: int, network: str = "192.168.179") -> Ports:
    return {"enp1s0f1np1": ("rocep1s0f1", f"{network}.{number}/24")}


def hearing(candidate: Candidate, **told: Any) -> dict[str, tuple[Heard, ...]]:
    """What both nodes hear over every rail of a candidate: everything, unless `told` says otherwise."""
    heard: dict[str, list[Heard]] = {"head": [], "worker": []}
    for rail in candidate.rails:
        for name, own, peer in (("head", rail.head, rail.worker), ("worker", rail.worker, rail.head)):
            full = Heard(own.interface, str(own.address.ip), str(peer.address.ip), rail.size, small=True, full=True)
            heard[name].append(replace(full, **told))
    return {name: tuple(each) for name, each in heard.items()}


def all_heard(every: tuple[Candidate, ...]) -> dict[str, tuple[Heard, ...]]:
    told = [hearing(each) for each in every]
    return {name: tuple(heard for each in told for heard in each[name]) for name in ("head", "worker")}


def refused(facts: dict[str, NodeFacts]) -> CheckRefused:
    assert candidates(facts) == ()
    return why_unjoined(facts)


# --- candidates ---------------------------------------------------------------------------------------------------


def test_both_halves_of_a_port_are_one_candidate() -> None:
    (found,) = candidates(pair_facts())
    assert [str(rail) for rail in found.rails] == [
        "enp1s0f0np0 192.168.177.11 - enp1s0f0np0 192.168.177.12",
        "enP2p1s0f0np0 192.168.178.11 - enP2p1s0f0np0 192.168.178.12",
    ]
    assert (selector(found.rails, 0), selector(found.rails, 1)) == (BOTH, BOTH)


def test_the_management_lan_is_never_a_candidate() -> None:
    facts = pair_facts(node(one_port(11, second=None)), node(one_port(12, second=None), lan="10.77.0.2/24"))
    (found,) = candidates(facts)
    assert {rail.network.with_prefixlen for rail in found.rails} == {"192.168.177.0/24"}


def test_the_ends_may_be_different_ports() -> None:
    facts = pair_facts(node(second_port(1)), node({"enP2p1s0f0np0": ("roceP2p1s0f0", "192.168.179.2/24")}))
    (found,) = candidates(facts)
    assert (selector(found.rails, 0), selector(found.rails, 1)) == ("=rocep1s0f1", "=roceP2p1s0f0")


def test_halves_in_one_subnet_face_the_same_half() -> None:
    def same(number: int) -> Ports:
        return {
            "enp1s0f0np0": ("rocep1s0f0", f"192.168.177.{number}/24"),
            "enP2p1s0f0np0": ("roceP2p1s0f0", f"192.168.177.{number + 10}/24"),
        }

    (found,) = candidates(pair_facts(node(same(1)), node(same(2))))
    assert [rail.head.interface == rail.worker.interface for rail in found.rails] == [True, True]


def test_names_of_a_vendors_own_do_not_matter() -> None:
    facts = pair_facts(node({"fabric0": ("mlx5_0", "10.9.0.1/30")}), node({"cx7": ("mlx5_1", "10.9.0.2/30")}))
    (found,) = candidates(facts)
    values = fabric_values(found, left_out=())
    assert values["worker.fabric.interface"].value == "cx7"
    assert values["head.fabric.prefix"].value == 30


# --- the best -----------------------------------------------------------------------------------------------------


def both_ports() -> dict[str, NodeFacts]:
    return pair_facts(node(one_port(11) | second_port(11)), node(one_port(12) | second_port(12)))


def test_of_two_networks_the_one_with_both_halves_is_first_and_the_other_is_told() -> None:
    facts = both_ports()
    every = candidates(facts)
    tried = heard_over(every, all_heard(every))
    assert [len(each.rails) for each in tried] == [2, 1]
    (note,) = wiring_notes(tried, tried[0], (), facts)
    assert note.startswith("2 networks join the nodes: 192.168.177.0/24")
    assert "since both halves of its port are in" in note
    assert "192.168.179.0/24 (enp1s0f1np1 192.168.179.11 - enp1s0f1np1 192.168.179.12)" in note


def test_of_two_networks_the_one_that_carries_something_is_first() -> None:
    first, second = candidates(both_ports())
    heard = {
        name: (*hearing(second)[name], *hearing(first, small=False, full=False)[name]) for name in ("head", "worker")
    }
    tried = heard_over((first, second), heard)
    assert [each.silent for each in tried] == [False, True]
    assert tried[0].first.head.interface == "enp1s0f1np1"


def test_of_two_equal_networks_the_first_port_is_first() -> None:
    facts = pair_facts(
        node(one_port(11, second=None) | second_port(11)), node(one_port(12, second=None) | second_port(12))
    )
    every = candidates(facts)
    tried = heard_over(every, all_heard(every))
    assert [each.first.head.interface for each in tried] == ["enp1s0f0np0", "enp1s0f1np1"]
    assert "since its port comes first" in wiring_notes(tried, tried[0], (), facts)[0]


def test_fixed_addresses_beat_link_local_ones() -> None:
    def local(number: int) -> Ports:
        return {"enp1s0f0np0": ("rocep1s0f0", f"169.254.17.{number}/16"), **second_port(number)}

    facts = pair_facts(node(local(1)), node(local(2)))
    every = candidates(facts)
    tried = heard_over(every, all_heard(every))
    assert tried[0].first.head.interface == "enp1s0f1np1"


def test_only_link_local_addresses_are_looked_up_at_each_start() -> None:
    facts = pair_facts(
        node({"enp1s0f0np0": ("rocep1s0f0", "169.254.17.4/16")}),
        node({"enp1s0f0np0": ("rocep1s0f0", "169.254.201.9/16")}),
    )
    (found,) = candidates(facts)
    assert fabric_values(found, left_out=())["head.fabric.address"].value == "auto"
    (note,) = wiring_notes((found,), found, (), facts)
    assert "link-local addresses, which change when a node boots" in note


def test_an_interface_of_the_lan_in_the_fabrics_subnet_is_told() -> None:
    facts = pair_facts(node(one_port(11), lan="192.168.177.100/24"), node(one_port(12)))
    (found,) = candidates(facts)
    (note,) = wiring_notes((found,), found, (), facts)
    assert "head: enP7s7 192.168.177.100/24 is in the fabric's subnet too" in note


@pytest.mark.parametrize(
    ("told", "carried"),
    [
        ({}, "whole"),
        ({"full": False}, "small"),
        ({"small": False, "full": False}, "nothing"),
        ({"small": False, "full": False, "problem": "Cannot assign requested address"}, "untried"),
    ],
)
def test_what_comes_through_is_said_in_a_word(told: dict[str, Any], carried: str) -> None:
    (found,) = candidates(pair_facts())
    (tried,) = heard_over((found,), hearing(found, **told))
    assert {rail.carried for rail in tried.rails} == {carried}


def test_one_way_is_not_a_way() -> None:
    (found,) = candidates(pair_facts())
    heard = {"head": hearing(found)["head"], "worker": hearing(found, small=False, full=False)["worker"]}
    (tried,) = heard_over((found,), heard)
    assert {rail.carried for rail in tried.rails} == {"one-way"}
    assert tried.silent
    assert "one way only" in why_silent((tried,)).why


def test_a_node_that_could_not_be_asked_leaves_it_untried() -> None:
    (found,) = candidates(pair_facts())
    (tried,) = heard_over((found,), {"head": hearing(found)["head"]})
    assert (tried.first.carried, tried.silent) == ("untried", False)


# --- what serves of it --------------------------------------------------------------------------------------------


def test_a_half_that_carries_nothing_is_left_out() -> None:
    facts = pair_facts()
    (found,) = candidates(facts)
    first, second = found.rails
    chosen, why = usable(Candidate((replace(first, carried="whole"), replace(second, carried="nothing"))), facts)
    assert [rail.head.interface for rail in chosen.rails] == ["enp1s0f0np0"]
    assert "nothing comes through enP2p1s0f0np0" in why[0]


def test_halves_without_a_common_gid_index_leave_the_second_out() -> None:
    facts = pair_facts()
    first, second = facts["worker"].hca_ports
    gids = tuple(replace(gid, index=7) for gid in second.gids)
    facts["worker"] = replace(facts["worker"], hca_ports=(first, replace(second, gids=gids)))
    chosen, why = usable(candidates(facts)[0], facts)
    assert len(chosen.rails) == 1
    assert "share no usable RoCE v2 GID index" in why[0]
    assert any(
        "half of the port's bandwidth is left out" in note for note in wiring_notes((chosen,), chosen, why, facts)
    )


def test_no_index_at_all_is_refused() -> None:
    facts = pair_facts()
    ports = tuple(replace(port, gids=()) for port in facts["head"].hca_ports)
    facts["head"] = replace(facts["head"], hca_ports=ports)
    with pytest.raises(CheckRefused, match="head: the ports of"):
        usable(candidates(facts)[0], facts)


# --- no way -------------------------------------------------------------------------------------------------------


def test_a_cable_that_is_out_is_said_with_the_end_that_has_no_link() -> None:
    names = tuple(one_port(11))
    error = refused(pair_facts(node(one_port(11), down=names), node(one_port(12))))
    assert (error.message, error.node) == (
        "no cable joins the nodes: no ConnectX-7 port of the head has a link",
        "head",
    )
    assert "plug the cable of worker enp1s0f0np0 in at the head" in error.remedy


def test_no_link_at_either_end_is_one_sentence() -> None:
    names = tuple(one_port(11))
    error = refused(pair_facts(node(one_port(11), down=names), node(one_port(12), down=names)))
    assert error.message == "no cable joins the nodes: no ConnectX-7 port of either has a link"
    assert "sudo ip link set enp1s0f0np0 up` on head and worker" in error.remedy


def test_a_missing_address_is_given_one_in_the_peers_subnet() -> None:
    error = refused(pair_facts(node(one_port(11)), node(one_port(12, first=None, second=None))))
    assert error.message == "the cable is in, and worker enp1s0f0np0 has no IPv4 address"
    assert "on worker: sudo ip addr add 192.168.177.12/24 dev enp1s0f0np0" in error.remedy
    assert "netplan" in error.remedy


def test_missing_addresses_on_both_get_a_subnet_that_neither_uses() -> None:
    bare = one_port(0, first=None, second=None)
    error = refused(pair_facts(node(bare, lan="192.168.177.1/24"), node(bare)))
    assert error.message == "the cable is in, and head enp1s0f0np0 and worker enp1s0f0np0 have no IPv4 address"
    assert "on head: sudo ip addr add 192.168.178.11/24 dev enp1s0f0np0" in error.remedy
    assert "on worker: sudo ip addr add 192.168.178.12/24 dev enp1s0f0np0" in error.remedy


def test_a_missing_address_is_put_on_the_port_that_faces_the_peers() -> None:
    bare: Ports = {"enp1s0f0np0": ("rocep1s0f0", None), "enp1s0f1np1": ("rocep1s0f1", None)}
    error = refused(pair_facts(node(second_port(11)), node(bare)))
    assert "192.168.179.12/24 dev enp1s0f1np1" in error.remedy


def test_different_subnets_are_named_with_the_commands_that_join_them() -> None:
    error = refused(pair_facts(node(one_port(11, second=None)), node(one_port(12, first="10.0.0", second=None))))
    assert error.message == (
        "the ends of the cable are in different subnets: head enp1s0f0np0 192.168.177.11/24, "
        "worker enp1s0f0np0 10.0.0.12/24"
    )
    assert "sudo ip addr del 10.0.0.12/24 dev enp1s0f0np0; sudo ip addr add 192.168.177.12/24" in error.remedy


def test_one_address_at_both_ends_is_named() -> None:
    error = refused(pair_facts(node(one_port(11, second=None)), node(one_port(11, second=None))))
    assert error.message == "both ends of the cable have the address 192.168.177.11"


def test_a_node_without_an_rdma_device_is_told_before_anything_else() -> None:
    error = refused(pair_facts(node(one_port(11)), {"hca_ports": ()}))
    assert (error.message, error.node) == (
        "worker: it shows no RDMA device, so nothing there can carry the fabric",
        "worker",
    )


def test_interfaces_that_could_not_be_read_are_no_cable_that_is_out() -> None:
    error = refused(pair_facts(node(one_port(11)), {"netdevs": (), "missing": {"netdevs": "no answer within 10 s"}}))
    assert (error.message, error.why) == (
        "worker: its network interfaces could not be read",
        "no answer within 10 s",
    )


def test_a_network_on_which_nothing_arrives_is_refused_with_every_way_that_was_tried() -> None:
    (found,) = candidates(pair_facts())
    (tried,) = heard_over((found,), hearing(found, small=False, full=False))
    error = why_silent((tried,))
    assert "nothing that one sends over it reaches the other" in error.message
    assert "nothing either way" in error.why
    assert "another machine" in error.remedy


def test_a_full_datagram_is_what_fits_through_the_narrower_end() -> None:
    facts = pair_facts(node(one_port(11)), node(one_port(12), mtu=1500))
    (found,) = candidates(facts)
    assert isinstance(found.first, Facing)
    assert (found.first.mtus, found.first.size) == ((9000, 1500), 1472)
