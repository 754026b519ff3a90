"""What the tool is given to reach the pair: an inventory, an ssh config, a key, and the nodes' host keys."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

import paramiko

from dspark_deploy.rehearsal.machine import HEAD, WORKER, Identity
from dspark_deploy.rehearsal.node import Ports
from dspark_deploy.rehearsal.places import Places
from dspark_deploy.rehearsal.sshd import USER

PAIR = "rehearsal"
PROFILE = "agent-1m"
HCA = "=rocep1s0f0,roceP2p1s0f0"


def write_client_files(
    places: Places,
    key: paramiko.PKey,
    host_keys: Mapping[str, paramiko.PKey],
    ssh_ports: Mapping[str, int],
    ports: Ports,
) -> None:
    """Write all of them. `host_keys` and `ssh_ports` are by role."""
    key.write_private_key_file(str(places.key))  # with mode 0600
    known = [
        f"[127.0.0.1]:{port} {host_keys[role].get_name()} {host_keys[role].get_base64()}\n"
        for role, port in ssh_ports.items()
    ]
    places.known_hosts.write_text("".join(known), encoding="utf-8")
    hosts = {identity.hostname: _settings(places, ssh_ports[identity.role]) for identity in (HEAD, WORKER)}
    places.ssh_config.write_text("".join(_host(name, settings) for name, settings in hosts.items()), encoding="utf-8")
    places.inventory.write_text(_inventory(places, ports), encoding="utf-8")
    _write_openssh(places, hosts)


def _settings(places: Places, port: int) -> dict[str, object]:
    """Of one host, by ssh's keywords."""
    return {
        "hostname": "127.0.0.1",
        "port": port,
        "user": USER,
        "identityfile": places.key,
        "identitiesonly": "yes",
        "identityagent": "none",
        "userknownhostsfile": places.known_hosts,
        "globalknownhostsfile": "/dev/null",
    }


def _host(name: str, settings: Mapping[str, object]) -> str:
    lines = (f'  {keyword} "{_literal(value)}"\n' for keyword, value in settings.items())
    return f"Host {name}\n" + "".join(lines)


def _literal(value: object) -> str:
    """A value in which ssh shall find no token."""
    return str(value).replace("%", "%%")


def _inventory(places: Places, ports: Ports) -> str:
    nodes = "\n".join(_node(identity) for identity in (HEAD, WORKER))
    return (
        "# The pair of `dspark rehearse`, which gives this file to every command. `dspark rehearse stop` removes it.\n"
        f"name: {PAIR}\nprofile: {PROFILE}\nssh_config: {json.dumps(str(places.ssh_config))}\n{nodes}\n"
        f"api: {{bind: 127.0.0.1, port: {ports.api}}}\nmaster_port: {ports.rendezvous}\n"
    )


def _node(identity: Identity) -> str:
    fabric = f'interface: enp1s0f0np0, address: {identity.fabric_address}, hca: "{HCA}", gid_index: auto'
    return f"{identity.role}:\n  host: {identity.hostname}\n  fabric: {{{fabric}}}"


def _write_openssh(places: Places, hosts: Mapping[str, Mapping[str, object]]) -> None:
    """A program that answers `ssh -G` for the two nodes, for a machine that lacks OpenSSH and has everything else."""
    places.programs.mkdir()
    for name, settings in hosts.items():
        # As OpenSSH prints them: it leaves the tokens of this one keyword to whoever asks.
        printed = {**settings, "identityfile": _literal(settings["identityfile"])}
        lines = (f"{keyword} {value}\n" for keyword, value in printed.items())
        (places.programs / name).write_text("".join(lines), encoding="utf-8")
    folder = shlex.quote(str(places.programs))
    script = f'#!/bin/sh\n[ "$1" = -G ] || exit 255\nfor host; do :; done\nexec cat {folder}/"$host"\n'
    (places.programs / "ssh").write_text(script, encoding="utf-8")
    (places.programs / "ssh").chmod(0o755)
