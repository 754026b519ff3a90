"""`init` on two real hosts: an inventory with which `up` succeeds as it is, or the sentence that says what lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.inventory import Inventory, load_inventory

from .bed import CHECKOUT, Bed
from .run import Ran
from .tool import DSPARK, error_lines

EXAMPLE = CHECKOUT / "tests" / "data" / "upstream" / "example.env"


def init(bed: Bed, *words: str | Path) -> Ran:
    """`dspark init` for the bed's pair, in the client's folder."""
    return bed.run([DSPARK, "init", "spark-head", "spark-worker", "--ssh-config", bed.ssh_config, *words])


def written(bed: Bed) -> Inventory:
    return load_inventory(bed.client / "inventory.yaml")


def told(ran: Ran) -> dict[str, Any]:
    document: dict[str, Any] = ran.check().json()
    return document


def up(bed: Bed) -> None:
    """`dspark up` with the inventory as it was written."""
    ran = bed.run([DSPARK, "up", "--output", "json"]).check()
    assert ran.json()["result"]["state"] == "serving"


def refused(bed: Bed, *words: str) -> str:
    """The sentence of an init that finds no way, with what to do about it; nothing was written."""
    ran = init(bed, *words)
    assert ran.returncode == 3, ran
    assert not (bed.client / "inventory.yaml").exists()
    return "\n".join(error_lines(ran))


def test_up_succeeds_with_what_init_wrote(bed: Bed) -> None:
    document = told(init(bed, "--output", "json"))
    assert (document["ok"], document["warnings"]) == (True, [])
    result = document["result"]
    assert [(each["network"], each["carried"]) for each in result["networks"]] == [
        ("192.168.177.0/24", ["whole", "whole"])
    ]
    assert [each for each in result["findings"] if each["status"] == "fail"] == []
    assert [node.ssh_connections() for node in bed.nodes] == [1, 1]
    inventory = written(bed)
    for node, known in ((bed.head, inventory.head), (bed.worker, inventory.worker)):
        assert (known.host, known.hf_home) == (node.alias, node.hf_home)
        assert (known.fabric.interface, known.fabric.address) == (node.fabric_interface, node.fabric_address)
        assert known.fabric.hca == "=rocep1s0f0,roceP2p1s0f0"
    up(bed)


def test_a_second_init_writes_over_nothing(bed: Bed) -> None:
    init(bed).check()
    before = (bed.client / "inventory.yaml").read_text()
    again = init(bed)
    assert again.returncode == 2
    assert "--force" in error_lines(again)[-1]
    init(bed, "--force").check()
    assert (bed.client / "inventory.yaml").read_text() == before


def test_a_cable_that_is_out_is_named_with_its_end(bed: Bed) -> None:
    bed.worker.pull_cable()
    said = refused(bed)
    assert "no cable joins the nodes: no ConnectX-7 port of the worker has a link" in said
    assert "plug the cable of head enp1s0f0np0 in at the worker" in said


def test_missing_addresses_are_named_with_the_commands_that_give_them(bed: Bed) -> None:
    """The interfaces still have the IPv6 addresses that each link gives itself."""
    for node in bed.nodes:
        node.set_fabric(fabric=None, fabric2=None)
    assert "fe80:" in bed.head.exec(["ip", "addr", "show", "dev", "enp1s0f0np0"]).stdout
    said = refused(bed)
    assert "the cable is in, and head enp1s0f0np0 and worker enp1s0f0np0 have no IPv4 address" in said
    assert "on head: sudo ip addr add 192.168.177.11/24 dev enp1s0f0np0" in said
    bed.head.set_fabric(fabric="192.168.177.11/24")
    assert "the cable is in, and worker enp1s0f0np0 has no IPv4 address" in refused(bed)
    bed.worker.set_fabric(fabric="192.168.177.12/24")
    init(bed).check()  # what was proposed, done


def test_addresses_of_two_subnets_are_named(bed: Bed) -> None:
    bed.worker.set_fabric(fabric="10.5.0.2/24", fabric2=None)
    assert "head enp1s0f0np0 192.168.177.11/24, worker enp1s0f0np0 10.5.0.2/24" in refused(bed)


def test_only_link_local_addresses_are_looked_up_at_each_start(bed: Bed) -> None:
    bed.head.set_fabric(fabric="169.254.17.4/16", fabric2=None)
    bed.worker.set_fabric(fabric="169.254.201.9/16", fabric2=None)
    ran = init(bed)
    assert "only link-local addresses, which change when a node boots" in ran.check().stdout
    assert written(bed).head.fabric.address == "auto"
    up(bed)


def test_a_second_network_is_told_and_the_first_port_with_both_halves_is_taken(bed: Bed) -> None:
    bed.head.set_fabric(spare="192.168.179.11/24")
    bed.worker.set_fabric(spare="192.168.179.12/24")
    document = told(init(bed, "--output", "json"))
    (warning,) = document["warnings"]
    assert warning.startswith("2 networks join the nodes: 192.168.177.0/24")
    assert "192.168.179.0/24 (enp1s0f1np1 192.168.179.11 - enp1s0f1np1 192.168.179.12)" in warning
    assert [each["chosen"] for each in document["result"]["networks"]] == [True, False]
    up(bed)


def test_a_second_network_is_taken_where_nothing_comes_through_the_first(bed: Bed) -> None:
    bed.head.set_fabric(spare="192.168.179.11/24")
    bed.worker.set_fabric(spare="192.168.179.12/24")
    # Links with addresses, and a wall between them: as with a cable that leads to another machine.
    for network in ("192.168.177.0/24", "192.168.178.0/24"):
        bed.worker.exec(["iptables", "-I", "INPUT", "-s", network, "-j", "DROP"]).check()
    try:
        networks = told(init(bed, "--output", "json"))["result"]["networks"]
    finally:
        for network in ("192.168.177.0/24", "192.168.178.0/24"):
            bed.worker.exec(["iptables", "-D", "INPUT", "-s", network, "-j", "DROP"]).check()
    assert [(each["network"], each["carried"], each["chosen"]) for each in networks] == [
        ("192.168.179.0/24", ["whole"], True),
        ("192.168.177.0/24", ["one-way", "one-way"], False),
    ]
    assert written(bed).head.fabric.hca == "=rocep1s0f1"


def test_an_env_file_of_upstreams_is_taken_over_and_up_succeeds(bed: Bed) -> None:
    keys = told(init(bed, "--from-env", EXAMPLE, "--output", "json"))["result"]["keys"]
    assert {each["name"]: each["to"] for each in keys if each["fate"] == "taken"}["NCCL_IB_HCA"] == "head.fabric.hca"
    assert written(bed).profile == "spark-pair-env"
    up(bed)


@pytest.mark.parametrize("path", sorted(EXAMPLE.parent.glob("damaged-*.env")), ids=lambda path: path.stem)
def test_a_damaged_env_file_is_taken_over_as_far_as_it_can_be_read(bed: Bed, path: Path) -> None:
    keys = told(bed.run([DSPARK, "init", "--from-env", path, "--output", "json"]))["result"]["keys"]
    assert all(each["why"] for each in keys if each["fate"] == "left-out")
    assert written(bed).name == "spark-pair"
    assert not Path("/tmp/dspark-was-run").exists()


def test_a_host_that_can_t_be_reached_is_named(bed: Bed) -> None:
    ran = bed.run([DSPARK, "init", "spark-head", "spark-nowhere", "--ssh-config", bed.ssh_config])
    assert ran.returncode == 5
    assert "worker (nvidia@10.77.0.99)" in error_lines(ran)[0]
    assert not (bed.client / "inventory.yaml").exists()
