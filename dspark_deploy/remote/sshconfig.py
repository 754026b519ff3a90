"""Where OpenSSH would go: one node's host as `ssh -G` resolves it, jump hosts included.

Include, Match, ProxyJump, tokens, precedence: all of it is OpenSSH's own reading, and none is repeated here.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.errors import ConfigError
from dspark_deploy.inventory.host import HostSpec, parse_host
from dspark_deploy.strict import Mistake

PORT = 22
RESOLVE_S = 10.0  # Match exec may run a command of the user's
DEFAULT_IDENTITIES = ("id_rsa", "id_ecdsa", "id_ed25519")
ALGORITHMS = ("kexalgorithms", "ciphers", "macs", "hostkeyalgorithms")
UNUSED = ("certificatefile", "knownhostscommand", "pkcs11provider")  # named where a connection fails without them


@dataclass(frozen=True, slots=True)
class SshTarget:
    """One machine on the way to a node, the node itself included, as OpenSSH would connect to it."""

    alias: str  # as it was asked for
    hostname: str
    user: str
    port: int
    command: str  # what a user would type to get there
    identity_files: tuple[Path, ...]  # in order; some may not exist
    agent: Path | None  # the agent's socket
    identities_only: bool
    known_hosts: tuple[Path, ...]  # the user's first; a key is added to the first of all
    hash_known_hosts: bool
    host_key_alias: str | None
    connect_timeout_s: float | None
    family: socket.AddressFamily
    bind_address: str | None
    compression: bool
    algorithms: Mapping[str, tuple[str, ...]]  # of ALGORITHMS; empty: the library's own
    unused: tuple[str, ...]  # directives that are set and not honoured

    @property
    def known_name(self) -> str:
        """What known_hosts calls this machine."""
        if self.host_key_alias:
            return self.host_key_alias
        return self.hostname if self.port == PORT else f"[{self.hostname}]:{self.port}"

    @property
    def login(self) -> str:
        """`ops@10.0.0.2`, with the port where it is not 22."""
        host = f"[{self.hostname}]" if ":" in self.hostname and self.port != PORT else self.hostname
        return f"{self.user}@{host}" if self.port == PORT else f"{self.user}@{host}:{self.port}"


def resolve_route(node: str, spec: HostSpec, ssh_config: Path | None = None) -> tuple[SshTarget, ...]:
    """The machines to connect to, one through the other; the last is the node. Raises ConfigError."""
    if shutil.which("ssh") is None:
        return (_without_openssh(node, spec, ssh_config),)
    return _route(node, spec, ssh_config, None, ())


def _route(
    node: str, spec: HostSpec, ssh_config: Path | None, jumps: str | None, behind: tuple[tuple[str, str, int], ...]
) -> tuple[SshTarget, ...]:
    settings = read_settings(_ask_openssh(node, spec, ssh_config, jumps))
    target = target_of(node, spec, settings, _command(spec, ssh_config), os.environ)
    place = (target.user, target.hostname, target.port)
    if place in behind:
        raise _loop(node, spec.host)
    hops = settings.get("proxyjump", ("none",))[0]
    if hops == "none":
        return (target,)
    # As OpenSSH does it: the last hop carries the connection, and is itself reached through those before it.
    *before, last = hops.split(",")
    hop = _hop(node, last)
    return (*_route(node, hop, ssh_config, ",".join(before) or None, (*behind, place)), target)


def _loop(node: str, host: str) -> ConfigError:
    return ConfigError(
        f"{node}: {host} is a jump host on the way to itself",
        why="the ssh config applies ProxyJump to the jump host too",
        remedy=f"give `Host {host}` a `ProxyJump none`",
        node=node,
    )


def _hop(node: str, text: str) -> HostSpec:
    try:
        return parse_host(text)
    except Mistake as mistake:
        raise ConfigError(
            f"{node}: the jump host {text!r} can't be read",
            why=str(mistake),
            remedy="mend ProxyJump in your ssh config",
            node=node,
        ) from mistake


def _ask_openssh(node: str, spec: HostSpec, ssh_config: Path | None, jumps: str | None) -> str:
    options = [*_options(spec, ssh_config), *(("-J", jumps) if jumps else ())]
    argv = ["ssh", "-G", "-T", *options, "--", spec.host]
    try:
        ended = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RESOLVE_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"{node}: `ssh -G {spec.host}` did not end within {RESOLVE_S:g} s",
            remedy="see which `Match exec` of your ssh config hangs",
            node=node,
        ) from error
    if "jumphost loop" in ended.stderr:  # ssh sees only those whose users are equal, too
        raise _loop(node, spec.host)
    if ended.returncode != 0:
        raise ConfigError(
            f"{node}: OpenSSH can't resolve {spec.host}",
            why=ended.stderr.strip(),
            remedy=f"mend it until `{' '.join(argv)}` succeeds",
            node=node,
        )
    return ended.stdout


def _options(spec: HostSpec, ssh_config: Path | None) -> list[str]:
    options = ["-F", str(ssh_config)] if ssh_config else []
    options += ["-l", spec.user] if spec.user else []
    return options + (["-p", str(spec.port)] if spec.port else [])


def _command(spec: HostSpec, ssh_config: Path | None) -> str:
    return " ".join(["ssh", *_options(spec, ssh_config), spec.host])


def read_settings(printed: str) -> dict[str, tuple[str, ...]]:
    """Read `ssh -G`: a keyword in lower case and its value a line; a keyword may come more than once."""
    settings: dict[str, tuple[str, ...]] = {}
    for line in printed.splitlines():
        keyword, _, value = line.partition(" ")
        settings[keyword] = (*settings.get(keyword, ()), value)
    return settings


def target_of(
    node: str, spec: HostSpec, settings: Mapping[str, tuple[str, ...]], command: str, environment: Mapping[str, str]
) -> SshTarget:
    """One machine out of what `ssh -G` printed. Raises ConfigError for a directive that can't be honoured."""
    proxy_command = _one(settings, "proxycommand")
    if proxy_command is not None:
        raise ConfigError(
            f"{node}: the ssh config of {spec.host} has a ProxyCommand, which this tool does not run",
            why=f"ProxyCommand {proxy_command}",
            remedy=f"use `ProxyJump` for {spec.host}, or give the node another host in the inventory",
            node=node,
        )
    hostname = _one(settings, "hostname") or spec.host
    user = _one(settings, "user") or getpass.getuser()
    port = int(_one(settings, "port") or PORT)
    expand = _Expansion(spec.host, hostname, user, port, _one(settings, "hostkeyalias") or spec.host, environment)
    known = [path for name in ("userknownhostsfile", "globalknownhostsfile") for path in _files(settings, name)]
    timeout = _one(settings, "connecttimeout")
    return SshTarget(
        alias=spec.host,
        hostname=hostname,
        user=user,
        port=port,
        command=command,
        identity_files=tuple(expand.path(path) for path in settings.get("identityfile", ())),
        agent=_agent(_one(settings, "identityagent", none="none"), environment, expand),
        identities_only=_one(settings, "identitiesonly") == "yes",
        known_hosts=tuple(known),
        hash_known_hosts=_one(settings, "hashknownhosts") == "yes",
        host_key_alias=_one(settings, "hostkeyalias"),
        connect_timeout_s=float(timeout) if timeout else None,
        family={"inet": socket.AF_INET, "inet6": socket.AF_INET6}.get(
            _one(settings, "addressfamily") or "", socket.AF_UNSPEC
        ),
        bind_address=_one(settings, "bindaddress"),
        compression=_one(settings, "compression") == "yes",
        algorithms={name: tuple((_one(settings, name) or "").split(",")) for name in ALGORITHMS if name in settings},
        unused=tuple(f"{name} {_one(settings, name)}" for name in UNUSED if _one(settings, name)),
    )


def _one(settings: Mapping[str, tuple[str, ...]], name: str, none: str | None = None) -> str | None:
    """The first value; `none` where it is the word OpenSSH has for nothing, or missing."""
    value = settings.get(name, ("",))[0]
    if value == "none":
        return none
    return value or None


def _files(settings: Mapping[str, tuple[str, ...]], name: str) -> Iterable[Path]:
    """Several paths on one line, tokens replaced already. OpenSSH puts no quotes around one that holds a blank."""
    printed = _one(settings, name) or ""
    whole = Path(printed).expanduser()
    return (whole,) if whole.is_file() else (Path(word).expanduser() for word in printed.split())


def _agent(value: str | None, environment: Mapping[str, str], expand: _Expansion) -> Path | None:
    """IdentityAgent: unset and SSH_AUTH_SOCK are the variable, `none` is none, $NAME another variable."""
    if value == "none":
        return None
    if value is None or value == "SSH_AUTH_SOCK":
        value = environment.get("SSH_AUTH_SOCK", "")
    elif value.startswith("$"):
        value = environment.get(value.strip("${}"), "")
    return expand.path(value) if value else None


class _Expansion:
    """The tokens that `ssh -G` leaves in paths (ssh_config(5), TOKENS)."""

    def __init__(
        self, alias: str, hostname: str, user: str, port: int, key_alias: str, environment: Mapping[str, str]
    ) -> None:
        local = socket.gethostname()
        self._tokens = {
            "%": "%",
            "d": str(Path.home()),
            "h": hostname,
            "i": str(os.getuid()),
            "k": key_alias,
            "L": local.split(".")[0],
            "l": local,
            "n": alias,
            "p": str(port),
            "r": user,
            "u": getpass.getuser(),
        }
        self._environment = environment

    def path(self, text: str) -> Path:
        """The path with its tokens, `${NAME}` and ~ replaced. An unknown token stays, so the path is not found."""
        replaced = re.sub(r"%(.)|\$\{(\w+)\}", self._replace, text)
        return Path(replaced).expanduser()

    def _replace(self, match: re.Match[str]) -> str:
        token, variable = match.groups()
        if token is not None:
            return self._tokens.get(token, match[0])
        return self._environment.get(variable, match[0])


def _without_openssh(node: str, spec: HostSpec, ssh_config: Path | None) -> SshTarget:
    """What can be known without OpenSSH: a full user@host:port, and OpenSSH's usual places."""
    if spec.user is None or ssh_config is not None:
        raise ConfigError(
            f"{node}: {spec.host} can't be resolved, since OpenSSH is not installed here",
            why="aliases and the ssh config are read by `ssh -G`",
            remedy="install the OpenSSH client, or write the node's host as user@host:port",
            node=node,
        )
    folder = Path.home() / ".ssh"
    agent = os.environ.get("SSH_AUTH_SOCK")
    return SshTarget(
        alias=spec.host,
        hostname=spec.host,
        user=spec.user,
        port=spec.port or PORT,
        command=_command(spec, None),
        identity_files=tuple(folder / name for name in DEFAULT_IDENTITIES),
        agent=Path(agent) if agent else None,
        identities_only=False,
        known_hosts=(folder / "known_hosts", Path("/etc/ssh/ssh_known_hosts")),
        hash_known_hosts=False,
        host_key_alias=None,
        connect_timeout_s=None,
        family=socket.AF_UNSPEC,
        bind_address=None,
        compression=False,
        algorithms={},
        unused=(),
    )
