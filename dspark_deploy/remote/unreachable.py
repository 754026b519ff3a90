"""Why a node can't be reached: one text and one remedy a cause. Every function returns the error to raise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, ip_address
from pathlib import Path

from paramiko.auth_strategy import AuthFailure, NoneAuth

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.remote.identity import KeyEncrypted
from dspark_deploy.remote.knownhosts import KnownKey, fingerprint
from dspark_deploy.remote.sshconfig import SshTarget

FABRIC_PREFIX = 24  # taken where the inventory gives an address without its net


@dataclass(frozen=True, slots=True)
class Hop:
    """The machine that is being connected to, in words: the node itself, or a jump host on the way to it."""

    node: str
    target: SshTarget
    is_jump: bool

    @property
    def where(self) -> str:
        """`worker (ops@10.0.0.2)`, `worker: jump host ops@10.0.0.9`."""
        if self.is_jump:
            return f"{self.node}: jump host {self.target.login}"
        return f"{self.node} ({self.target.login})"

    @property
    def _try(self) -> str:
        return f"try `{self.target.command}`"

    def name_unknown(self, said: str) -> NodeUnreachable:
        """The name has no address."""
        return self._error(
            f"the name {self.target.hostname} can't be resolved",
            why=said,
            remedy=f"correct the host of the {self.node} in the inventory, or HostName in your ssh config",
        )

    def refused(self) -> NodeUnreachable:
        """Something is there, and no sshd listens."""
        return self._error(
            f"connection refused on port {self.target.port}",
            why="the machine answers, and no SSH server listens there",
            remedy=f"start sshd on it, or correct the port; {self._try}",
        )

    def no_route(self, said: str) -> NodeUnreachable:
        """The network says that it can't get there."""
        return self._error(
            f"no way to {self.target.hostname}: {said}",
            remedy=f"see that the machine is on and that its address is right; {self._try}",
        )

    def timed_out(self, seconds: float, fabric: IPv4Address | IPv4Interface | None = None) -> NodeUnreachable:
        """Nothing comes back at all."""
        looks = _looks_like_fabric(self.target.hostname, fabric)
        return self._error(
            f"no answer on port {self.target.port} within {seconds:g} s",
            why=looks or "the machine is off or hangs, a firewall drops the packets, or the address is another one's",
            remedy="give the node's management address as its host" if looks else f"see that it is on; {self._try}",
        )

    def no_banner(self, seconds: float) -> NodeUnreachable:
        """The port opens and no SSH server speaks."""
        return self._error(
            f"ssh banner timeout: port {self.target.port} opens and nothing speaks within {seconds:g} s",
            why="the machine hangs or is overloaded, or another service has the port",
            remedy=f"look at its console, power it off and on if it is frozen; {self._try}",
        )

    def broken_off(self, said: str) -> NodeUnreachable:
        """The connection ended before it stood."""
        return self._error(
            "the SSH connection broke off while it was opened",
            why=said,
            remedy=f"{self._try} -v; sshd's own log on the machine says more",
        )

    def unknown_key(self, key_type: str, blob: bytes, ca: bool) -> NodeUnreachable:
        """known_hosts says nothing of the machine."""
        authority = "\nits @cert-authority line in known_hosts is not used by this tool" if ca else ""
        return self._error(
            f"its host key is not known: {key_type} {fingerprint(blob)}",
            why=f"no line for {self.target.known_name} in {_files(self.target)}{authority}",
            remedy=(
                f"compare the fingerprint with the machine's own, then run `{self.target.command}` once and accept it, "
                "or give --accept-new-host-keys"
            ),
        )

    def unkept_key(self, path: Path, said: str) -> NodeUnreachable:
        """The key was to be accepted, and known_hosts can't be written."""
        return self._error(
            f"its new host key can't be kept in {path}",
            why=said,
            remedy=f"make that file writable, or let UserKnownHostsFile of {self.target.alias} name one that is",
        )

    def changed_key(self, key_type: str, blob: bytes, known: Sequence[KnownKey]) -> NodeUnreachable:
        """known_hosts has another key for the machine."""
        first = known[0]
        lines = [f"known: {key.type} {key.fingerprint} ({key.path} line {key.line})" for key in known]
        return self._error(
            f"ITS HOST KEY HAS CHANGED: it offers {key_type} {fingerprint(blob)}",
            why="\n".join([*lines, "it was installed anew, or somebody sits in between"]),
            remedy=(
                "if it was installed anew and the fingerprint is right: "
                f"ssh-keygen -f {first.path} -R '{self.target.known_name}'; nothing else makes this tool connect"
            ),
        )

    def revoked_key(self, key_type: str, blob: bytes) -> NodeUnreachable:
        """known_hosts forbids the key."""
        return self._error(
            f"its host key is revoked: {key_type} {fingerprint(blob)}",
            why=f"an @revoked line in {_files(self.target)} names it",
            remedy="give the machine a new host key",
        )

    def not_authenticated(self, failure: AuthFailure) -> NodeUnreachable:
        """None of our keys opens it."""
        attempts = [each for each in failure.result if not isinstance(each.source, NoneAuth)]
        encrypted = [each.source for each in attempts if isinstance(each.result, KeyEncrypted)]
        tried = [f"{each.source}: {_outcome(each.result)}" for each in attempts]
        if self.target.agent is None:
            tried.append("no agent: neither SSH_AUTH_SOCK nor IdentityAgent names one")
        elif not self.target.agent.exists():
            tried.append(f"no agent: {self.target.agent} is not there")
        tried += [f"not used by this tool: {directive}" for directive in self.target.unused]
        if any(_hung_up(each.result) for each in attempts):
            remedy = f"set `IdentitiesOnly yes` and the right IdentityFile for {self.target.alias} in your ssh config"
        elif encrypted:
            remedy = f"ssh-add {encrypted[0]}, then run the command again in the same session"
        else:
            remedy = f"ssh-copy-id, or name the right key in your ssh config; {self._try} -o BatchMode=yes"
        return self._error(
            f"login as {self.target.user} was refused",
            why="\n".join(tried) or "there is no key to offer",
            remedy=remedy,
        )

    def half_authenticated(self) -> NodeUnreachable:
        """The key was taken and the server wants more."""
        return self._error(
            f"login as {self.target.user} needs more than a key",
            why="the server took the key and asks for a second factor, which this tool can't give",
            remedy="let a key alone be enough for this user (AuthenticationMethods in its sshd_config)",
        )

    def no_common_algorithm(self, directive: str) -> NodeUnreachable:
        """The ssh config restricts to what the library does not have."""
        return self._error(
            f"{directive} of the ssh config leaves no algorithm that this tool has",
            remedy=f"add one more to {directive} for this host",
        )

    def next_unreachable(self, beyond: SshTarget, said: str) -> NodeUnreachable:
        """The jump host is fine, and can't get to the next machine."""
        return self._error(
            f"can't reach {beyond.hostname} port {beyond.port}: {said}",
            why="the jump host itself was reached and its login is fine",
            remedy=f"see that {beyond.hostname} is on and that the jump host may forward to it; try `{beyond.command}`",
        )

    def _error(self, what: str, *, remedy: str, why: str = "") -> NodeUnreachable:
        return NodeUnreachable(f"{self.where}: {what}", why=why, remedy=remedy, node=self.node)


def _hung_up(result: list[str] | Exception) -> bool:
    return "No existing session" in str(result)


def _outcome(result: list[str] | Exception) -> str:
    if isinstance(result, Exception):
        said = str(result)
        if _hung_up(result):
            return "not tried: the server had hung up, after too many keys"
        return "refused" if not said or "Authentication failed" in said or "Bad authentication" in said else said
    return "taken"


def _files(target: SshTarget) -> str:
    return ", ".join(str(path) for path in target.known_hosts) or "any known-hosts file: none is configured"


def _looks_like_fabric(hostname: str, fabric: IPv4Address | IPv4Interface | None) -> str:
    try:
        address = ip_address(hostname)
    except ValueError:
        return ""
    if fabric is None or not isinstance(address, IPv4Address):
        return ""
    net = (fabric if isinstance(fabric, IPv4Interface) else IPv4Interface(f"{fabric}/{FABRIC_PREFIX}")).network
    if address not in net:
        return ""
    return f"{address} looks like a fabric address ({net}): it exists on the cable between the nodes only"
