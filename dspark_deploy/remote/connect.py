"""From what the inventory says of a node to an open Host."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

from pydantic import SecretStr

from dspark_deploy.inventory.host import HostSpec
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.link import open_link
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.ssh import SshHost
from dspark_deploy.remote.sshconfig import resolve_route


def open_host(
    name: str,
    spec: HostSpec,
    *,
    ssh_config: Path | None = None,
    accept_new_host_keys: bool = False,
    fabric_address: IPv4Address | IPv4Interface | None = None,
    api_key: SecretStr | None = None,
) -> Host:
    """Open the node `name` ("head" or "worker"). `fabric_address` only helps to explain a timeout.

    Raises NodeUnreachable, or ConfigError where the ssh config can't be followed.
    """
    if spec.local:
        return LocalHost(name, api_key)
    route = resolve_route(name, spec, ssh_config)
    link = open_link(name, route, accept_new_host_keys=accept_new_host_keys, fabric_address=fabric_address)
    return SshHost(name, link, api_key)
