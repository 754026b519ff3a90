"""An inventory file: what it may leave out, and every mistake in it."""

from __future__ import annotations

import os
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from dspark_deploy.bundled import data_folder
from dspark_deploy.errors import ConfigError, ExitCode
from dspark_deploy.inventory import Api, Fabric, Inventory, Node, load_inventory, subnet_of

SHORTEST = "name: p\nhead:\n  host: spark-a\nworker:\n  host: spark-b\n"
WIRED = """\
name: p
head:
  host: spark-a
  fabric: {address: 10.0.0.1}
worker:
  host: spark-b
  fabric: {address: 10.0.0.2}
"""


def load(folder: Path, text: str) -> Inventory:
    path = folder / "inventory.yaml"
    path.write_text(text)
    return load_inventory(path)


def refused(folder: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    assert caught.value.code is ExitCode.USAGE
    assert caught.value.remedy
    return caught.value


def test_only_the_hosts_have_to_be_said(tmp_path: Path) -> None:
    assert load(tmp_path, SHORTEST) == Inventory(
        name="p",
        profile=None,
        ssh_config=None,
        head=Node(
            host="spark-a",
            fabric=Fabric(interface="auto", address="auto", prefix=None, hca="auto", gid_index="auto"),
            hf_home="~/.cache/huggingface",
            hub_cache=None,
        ),
        worker=Node(host="spark-b"),
        api=Api(port=8888, key_file=None),
        master_port=25000,
        restart="no",
    )


def test_the_example_loads() -> None:
    inventory = load_inventory(data_folder("profiles").parent / "inventory.example.yaml")
    assert inventory.head.fabric.address == IPv4Address("192.168.177.11")
    assert inventory.restart == "no"


def test_restart_may_be_a_plain_no(tmp_path: Path) -> None:
    assert load(tmp_path, SHORTEST + "restart: no\n").restart == "no"


def test_a_file_that_is_named_is_looked_for_beside_the_inventory(tmp_path: Path) -> None:
    assert load(tmp_path, SHORTEST + "ssh_config: ssh.conf\n").ssh_config == tmp_path / "ssh.conf"
    assert load(tmp_path, SHORTEST + "ssh_config: /etc/ssh.conf\n").ssh_config == Path("/etc/ssh.conf")


def test_an_absent_inventory_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file") as caught:
        load_inventory(tmp_path / "inventory.yaml")
    assert "inventory.example.yaml" in caught.value.remedy


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: p", "nmae: p", "line 1: `nmae` is not a known key"),
        ("name: p", "name: p\nname: q", "line 2: `name` is written twice"),
        ("name: p", "name: DSpark-0.1.1.RC", 'line 1: `name` is "DSpark-0.1.1.RC"'),
        ("name: p", "name: p\nmaster_port: '6'", 'line 2: `master_port` is "6"'),
        ("name: p", "name: p\nmaster_port: true", "line 2: `master_port` is true"),
        ("name: p", "name: p\nmaster_port: 70000", "line 2: `master_port` is 70000"),
        ("name: p", "name: p\napi: {port: 25000}", "line 2: `api.port` is 25000, which is master_port too"),
        ("name: p", "name: p\napi: {bind: a b}", 'line 2: `api.bind` is "a b": it is no address'),
        ("name: p", "name: p\napi: {bind: nowhere}", 'line 2: `api.bind` is "nowhere": it is no address'),
        ("name: p", f"name: {'p' * 64}", "line 1: `name` is"),
        ("name: p", "name: p\nrestart: never", 'line 2: `restart` is "never"'),
        ("name: p", "name: p\nssh_config: 3", "line 2: `ssh_config` is 3"),
        ("name: p\n", "", "line 1: `name` is missing"),
        ("host: spark-b", "host: spark-a", "line 6: `worker.host` is the host that the head is too, spark-a"),
        ("host: spark-b", "host: root@SPARK-A:22", "line 6: `worker.host` is the host that the head is too"),
        ("host: spark-b", "host: spark-b:ssh", 'line 6: `worker.host` is "spark-b:ssh": `ssh` is no port'),
        ("host: spark-b", "host: ''", 'line 6: `worker.host` is ""'),
        ("host: spark-b", "host: spark-b\n  hf_home: cache", 'line 7: `worker.hf_home` is "cache": it is relative'),
        ("host: spark-b", "host: spark-b\n  hf_home: ~x/c", 'line 7: `worker.hf_home` is "~x/c": it is relative'),
        ("host: spark-b", "host: spark-b\n  hf_home: $HOME/c", "no variable is expanded"),
        ("host: spark-b", "host: spark-b\n  hf_home: ${HOME}/c", "no variable is expanded"),
        ("host: spark-b", "host: spark-b\n  hf_home: /Users/dev/c", "a path of a Mac or of Windows"),
        ("host: spark-b", "host: spark-b\n  hf_home: /mnt/c/hf", "a path of a Mac or of Windows"),
        ("host: spark-b", 'host: spark-b\n  hf_home: "C:\\\\hf"', "a path of a Mac or of Windows"),
        ("host: spark-b", "host: spark-b\n  hf_home: /", 'line 7: `worker.hf_home` is "/": it is the root'),
        ("host: spark-b", "host: spark-b\n  hf_home: //../.", "it is the root of the node's disk"),
        ("host: spark-b", "host: spark-b\n  hub_cache: hub", '`worker.hub_cache` is "hub": it is relative'),
        ("10.0.0.2", "10.0.0.1", "line 7: `worker.fabric.address` is 10.0.0.1, the head's address too"),
        ("10.0.0.2", "127.0.0.1", 'line 7: `worker.fabric.address` is "127.0.0.1": the other node can\'t reach it'),
        ("10.0.0.2", "0.0.0.0", "the other node can't reach it"),
        ("10.0.0.2", "224.0.0.1", "the other node can't reach it"),
        (
            "10.0.0.2",
            "10.0.0.255",
            "`worker.fabric.address` is 10.0.0.255, which is the broadcast address of 10.0.0.0/24",
        ),
        ("10.0.0.2", "10.0.0.0", "`worker.fabric.address` is 10.0.0.0, which is the name of 10.0.0.0/24"),
        ("10.0.0.2", "fd00::2", 'line 7: `worker.fabric.address` is "fd00::2"'),
        (
            "10.0.0.2",
            "10.0.1.2",
            "`worker.fabric.address` is in 10.0.1.0/24, and the head's 10.0.0.1 is in 10.0.0.0/24",
        ),
        ("address: 10.0.0.2", "gid_index: 256", "line 7: `worker.fabric.gid_index` is 256"),
        ("address: 10.0.0.2", "gid_index: '3'", '`worker.fabric.gid_index` is "3"'),
        ("address: 10.0.0.2", "hca: ''", '`worker.fabric.hca` is ""'),
        ("address: 10.0.0.2", 'hca: "=a, b"', "it holds a blank or no device"),
        ("address: 10.0.0.2", "hca: ',,'", "it holds a blank or no device"),
        ("address: 10.0.0.2", "hca: '=a,,b'", "it holds a blank or no device"),
        ("address: 10.0.0.2", "hca: '^='", "it holds a blank or no device"),
        ("address: 10.0.0.2", "interface: lo", "can't be an interface between two nodes"),
        ("address: 10.0.0.2", 'interface: "^lo,docker0"', "a list or a pattern, not one interface"),
        ("address: 10.0.0.2", "interface: enp*", "a list or a pattern, not one interface"),
        ("address: 10.0.0.2", "interface: 'eth0,eth1'", "a list or a pattern, not one interface"),
    ],
)
def test_a_mistake_names_file_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    error = refused(tmp_path, WIRED.replace(old, new, 1))
    assert error.message.startswith(str(tmp_path / "inventory.yaml"))
    assert message in error.message


def test_both_local_is_refused(tmp_path: Path) -> None:
    text = SHORTEST.replace("spark-a", "local").replace("spark-b", "local")
    assert "line 5: `worker.host` is local: a pair is two nodes" in refused(tmp_path, text).message


def test_two_ports_of_one_machine_may_be_two_nodes(tmp_path: Path) -> None:
    text = SHORTEST.replace("spark-a", "ops@gate:2201").replace("spark-b", "ops@gate:2202")
    assert load(tmp_path, text).worker.spec.port == 2202


def test_a_wider_subnet_can_be_said(tmp_path: Path) -> None:
    apart = WIRED.replace("10.0.0.2}", "10.0.1.2, prefix: 16}").replace("10.0.0.1}", "10.0.0.1, prefix: 16}")
    assert load(tmp_path, apart).worker.fabric.address == IPv4Address("10.0.1.2")


def test_a_subnet_of_two_has_no_address_that_is_nobodys(tmp_path: Path) -> None:
    two = WIRED.replace("10.0.0.1}", "10.0.0.0, prefix: 31}").replace("10.0.0.2}", "10.0.0.1, prefix: 31}")
    assert load(tmp_path, two).worker.fabric.address == IPv4Address("10.0.0.1")


def test_link_local_addresses_share_their_subnet(tmp_path: Path) -> None:
    link_local = WIRED.replace("10.0.0.1", "169.254.17.4").replace("10.0.0.2", "169.254.201.9")
    assert subnet_of(load(tmp_path, link_local).head.fabric) == IPv4Network("169.254.0.0/16")


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (None, 0o600, "which is not there"),
        ("", 0o600, "which is empty"),
        (" \n", 0o600, "which is empty"),
        ("sk one\n", 0o600, "which holds a blank"),
        ("sk-ö\n", 0o600, "which holds a blank or a character that no HTTP header carries"),
        ("a\nb\n", 0o600, "which holds 2 lines"),
        ("a" * 4097, 0o600, "which holds 4097 characters"),
        ("a\n", 0o640, "which can be read by others"),
        ("a\n", 0o604, "which can be read by others"),
    ],
)
def test_a_key_file_is_never_ignored(tmp_path: Path, content: str | None, mode: int, message: str) -> None:
    if content is not None:
        (tmp_path / "key").write_text(content)
        (tmp_path / "key").chmod(mode)
    error = refused(tmp_path, SHORTEST + "api: {key_file: key}\n")
    assert "line 6: `api.key_file` names" in error.message
    assert message in error.message


@pytest.mark.parametrize("named", ["folder", "pipe"])
def test_a_key_file_that_is_no_file_is_told_from_one_that_is_missing(tmp_path: Path, named: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    error = refused(tmp_path, SHORTEST + f"api: {{key_file: {named}}}\n")
    assert error.message.endswith(f"names {tmp_path / named}, which is no regular file")


def test_the_home_of_a_user_whom_nobody_knows_is_a_path_that_is_not_there(tmp_path: Path) -> None:
    error = refused(tmp_path, SHORTEST + "api: {key_file: ~nobody-of-that-name/key}\n")
    assert error.message.endswith("~nobody-of-that-name/key, which is not there")


def test_a_key_files_path_begins_at_the_inventory_and_the_key_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-one\n")
    (tmp_path / "key").chmod(0o600)
    inventory = load(tmp_path, SHORTEST + "api: {key_file: key}\n")
    assert inventory.api.key_file == tmp_path / "key"
    assert "sk-one" not in repr(inventory)
