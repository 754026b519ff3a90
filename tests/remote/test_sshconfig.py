from __future__ import annotations

import getpass
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import ConfigError
from dspark_deploy.inventory.host import HostSpec, parse_host
from dspark_deploy.remote.sshconfig import SshTarget, read_settings, resolve_route, target_of

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh missing: apt install openssh-client")


def write_config(home: Path, text: str) -> Path:
    path = home / "ssh_config"
    path.write_text(text)
    return path


def target(printed: str, **environment: str) -> SshTarget:
    return target_of("head", HostSpec("spark-a"), read_settings(printed), "ssh spark-a", environment)


def test_settings_keep_every_value_of_a_keyword() -> None:
    settings = read_settings("user ops\nidentityfile ~/.ssh/a\nidentityfile ~/.ssh/b c\n")
    assert settings == {"user": ("ops",), "identityfile": ("~/.ssh/a", "~/.ssh/b c")}


def test_values_come_as_openssh_printed_them(home: Path) -> None:
    found = target(
        "hostname 10.0.0.1\nuser ops\nport 2222\nidentitiesonly yes\nidentityfile ~/.ssh/id_%h_%r_%n\n"
        "userknownhostsfile /a /b\nglobalknownhostsfile /c\nhostkeyalias sparky\nconnecttimeout 3\n"
        "addressfamily inet\nbindaddress 10.0.0.9\ncompression yes\nhashknownhosts yes\nkexalgorithms x,y\n"
        "pkcs11provider /usr/lib/token.so\n"
    )
    assert (found.login, found.known_name) == ("ops@10.0.0.1:2222", "sparky")
    assert found.identities_only
    assert found.identity_files == (home / ".ssh/id_10.0.0.1_ops_spark-a",)
    assert found.known_hosts == (Path("/a"), Path("/b"), Path("/c"))
    assert (found.connect_timeout_s, found.family, found.bind_address) == (3, socket.AF_INET, "10.0.0.9")
    assert (found.compression, found.hash_known_hosts) == (True, True)
    assert found.algorithms == {"kexalgorithms": ("x", "y")}
    assert found.unused == ("pkcs11provider /usr/lib/token.so",)


@needs_ssh
def test_a_path_of_known_hosts_may_hold_blanks_and_percent_signs(home: Path) -> None:
    folder = home / "100 %d"
    folder.mkdir()
    (folder / "known").touch()
    config = write_config(home, f'Host spark-a\n  UserKnownHostsFile "{str(folder).replace("%", "%%")}/known"\n')
    (only,) = resolve_route("head", HostSpec("spark-a"), config)
    assert only.known_hosts[0] == folder / "known"


def test_none_is_nothing() -> None:
    found = target(
        "connecttimeout none\nbindaddress none\nuserknownhostsfile none\nproxycommand none\nhostkeyalias none"
    )
    assert (found.connect_timeout_s, found.bind_address, found.known_hosts) == (None, None, ())
    assert found.known_name == "spark-a"


@pytest.mark.parametrize(
    ("printed", "agent"),
    [
        ("", "/run/agent"),
        ("identityagent SSH_AUTH_SOCK", "/run/agent"),
        ("identityagent none", None),
        ("identityagent $OTHER", "/run/other"),
        ("identityagent ${OTHER}", "/run/other"),
        ("identityagent /run/its own", "/run/its own"),
    ],
)
def test_the_agent_is_the_one_that_openssh_would_ask(printed: str, agent: str | None) -> None:
    found = target(printed, SSH_AUTH_SOCK="/run/agent", OTHER="/run/other")
    assert found.agent == (Path(agent) if agent else None)


@pytest.mark.parametrize(
    ("hostname", "port", "name"),
    [("10.0.0.1", 22, "10.0.0.1"), ("10.0.0.1", 2222, "[10.0.0.1]:2222"), ("fd00::2", 2222, "[fd00::2]:2222")],
)
def test_known_hosts_has_the_port_in_the_name(hostname: str, port: int, name: str) -> None:
    assert target(f"hostname {hostname}\nport {port}").known_name == name


def test_a_proxy_command_is_named() -> None:
    with pytest.raises(ConfigError, match="ProxyCommand") as failed:
        target("proxycommand nc %h %p")
    assert failed.value.why == "ProxyCommand nc %h %p"
    assert "ProxyJump" in failed.value.remedy


WILDCARD = """\
Host spark-a
  HostName 10.0.0.1
  Port 2222
  User ops
  ProxyJump none
Host spark-b
  HostName 10.0.0.2
Host bastion
  HostName 10.0.0.254
  User jump
  ProxyJump none
Host *
  ProxyJump bastion
"""


@needs_ssh
def test_a_wildcard_jump_host_does_not_apply_where_it_is_none(home: Path) -> None:
    (only,) = resolve_route("head", HostSpec("spark-a"), write_config(home, WILDCARD))
    assert only.login == "ops@10.0.0.1:2222"


@needs_ssh
def test_a_jump_host_is_resolved_by_its_own_name(home: Path) -> None:
    route = resolve_route("head", HostSpec("spark-b", user="me"), write_config(home, WILDCARD))
    assert [hop.login for hop in route] == ["jump@10.0.0.254", "me@10.0.0.2"]


@needs_ssh
def test_a_chain_of_jump_hosts_is_walked_in_its_order(home: Path) -> None:
    config = write_config(
        home,
        "Host node\n  ProxyJump a@h1:33,[fd00::1]:44\nHost fd00::1\n  User six\n  ProxyJump never\n"
        "Host h1\n  ProxyJump outer\nHost outer\n  User o\n",
    )
    route = resolve_route("worker", HostSpec("node", user="me", port=5), config)
    assert [hop.login for hop in route] == ["o@outer", "a@h1:33", "six@[fd00::1]:44", "me@node:5"]


@needs_ssh
@pytest.mark.parametrize("own", ["", "Host bastion\n  User jump\n", "Host bastion\n  HostName 10.0.0.9\n"])
def test_a_jump_host_on_the_way_to_itself_is_an_error(home: Path, own: str) -> None:
    config = write_config(home, f"{own}Host *\n  ProxyJump bastion\n")
    with pytest.raises(ConfigError, match="bastion is a jump host on the way to itself") as failed:
        resolve_route("head", HostSpec("spark-a"), config)
    assert "ProxyJump none" in failed.value.remedy


@needs_ssh
@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("ops@10.0.0.2:2222", "ops@10.0.0.2:2222"),
        ("ops@[fd00::2]:2222", "ops@[fd00::2]:2222"),
        ("ops@fd00::2", "ops@fd00::2"),
        ("ops@corp@10.0.0.2", "ops@corp@10.0.0.2"),
    ],
)
def test_a_host_without_an_alias_is_itself(home: Path, text: str, login: str) -> None:
    (only,) = resolve_route("head", parse_host(text), write_config(home, ""))
    assert only.login == login


@needs_ssh
def test_a_config_that_openssh_refuses_is_quoted(home: Path) -> None:
    with pytest.raises(ConfigError, match="can't resolve spark-a") as failed:
        resolve_route("head", HostSpec("spark-a"), write_config(home, "Nonsense yes\n"))
    assert "Bad configuration option" in failed.value.why


class TestWithoutOpenSsh:
    @pytest.fixture(autouse=True)
    def no_ssh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shutil.which", lambda _: None)

    def test_user_host_and_port_are_enough(self, home: Path) -> None:
        (only,) = resolve_route("head", HostSpec("10.0.0.1", "ops", 2222))
        assert only.login == "ops@10.0.0.1:2222"
        assert home / ".ssh/id_ed25519" in only.identity_files
        assert only.known_hosts[0] == home / ".ssh/known_hosts"

    @pytest.mark.parametrize("more", [{}, {"ssh_config": Path("/x"), "user": "ops"}])
    def test_anything_else_is_an_error_that_says_so(self, more: dict[str, Any]) -> None:
        spec = HostSpec("spark-a", more.get("user"))
        with pytest.raises(ConfigError, match="OpenSSH is not installed") as failed:
            resolve_route("head", spec, more.get("ssh_config"))
        assert "user@host:port" in failed.value.remedy


def test_the_login_name_defaults_to_one_s_own() -> None:
    assert target("hostname x").user == getpass.getuser()
