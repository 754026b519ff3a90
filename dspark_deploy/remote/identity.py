"""Which keys are offered, in OpenSSH's order: the agent's, those of the config first, then the files."""

from __future__ import annotations

import base64
import binascii
import functools
import getpass
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import paramiko
from paramiko.agent import AgentSSH
from paramiko.auth_strategy import AuthSource, AuthStrategy, InMemoryPrivateKey, NoneAuth
from paramiko.pkey import UnknownKeyType

from dspark_deploy.remote.sshconfig import SshTarget

AGENT_S = 5.0
PASSPHRASE_TRIES = 3  # OpenSSH's NumberOfPasswordPrompts
OPEN_TO_OTHERS = 0o077


class KeyUnusable(Exception):
    """A key file that can't be offered, and why."""


class KeyEncrypted(KeyUnusable):
    """It has a passphrase, no agent holds it, and there is nobody to ask."""


class Identities(AuthStrategy):
    """Everything this user can show to one machine. Nothing is asked for unless standard input is a terminal."""

    def __init__(self, target: SshTarget) -> None:
        super().__init__(ssh_config=paramiko.SSHConfig())
        self._target = target

    def get_sources(self) -> Iterator[AuthSource]:
        """See AuthStrategy. First of all nothing, as ssh does: some servers know the user already."""
        target = self._target
        yield NoneAuth(target.user)
        files = [path for path in target.identity_files if path.is_file()]
        listed = {blob for path in files if (blob := public_blob(path)) is not None}
        held = _agent_keys(target.agent)
        held.sort(key=lambda key: key.blob not in listed)
        for key in held:
            if key.blob in listed or not target.identities_only:
                yield AgentKey(target.user, key)
        tried = {key.blob for key in held}
        for path in files:
            if public_blob(path) not in tried and not _is_public(path):
                yield KeyFile(target.user, path)


class AgentKey(InMemoryPrivateKey):
    """A key that an agent holds."""

    def __init__(self, user: str, key: paramiko.AgentKey) -> None:
        super().__init__(user, key)
        self._name = key.comment or key.get_name()

    def __str__(self) -> str:
        return f"{self._name} of the agent"


class KeyFile(AuthSource):
    """A key in a file, read when its turn comes."""

    def __init__(self, user: str, path: Path) -> None:
        super().__init__(user)
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def authenticate(self, transport: paramiko.Transport) -> list[str]:
        """See AuthSource. Raises KeyUnusable."""
        return transport.auth_publickey(self.username, load_key(self._path))


def load_key(path: Path) -> paramiko.PKey:
    """The private key in `path`; its certificate beside it goes along. Raises KeyUnusable."""
    mode = path.stat().st_mode & 0o777
    if mode & OPEN_TO_OTHERS:
        raise KeyUnusable(f"not used: its mode {mode:04o} opens it to others, as ssh has it too")
    try:
        return paramiko.PKey.from_path(path)
    except (TypeError, paramiko.PasswordRequiredException) as error:  # cryptography has no class for `encrypted`
        if not sys.stdin.isatty():
            raise KeyEncrypted("encrypted, and no agent holds it") from error
    except (OSError, ValueError, UnknownKeyType, paramiko.SSHException) as error:
        raise KeyUnusable(f"can't be read: {error}") from error
    with _asking:
        return _unlock(path)


_asking = threading.Lock()  # both nodes connect at once: one question, and the answer serves both


@functools.cache
def _unlock(path: Path) -> paramiko.PKey:
    for _ in range(PASSPHRASE_TRIES):
        passphrase = getpass.getpass(f"Passphrase of {path}: ")
        try:
            # Bytes: cryptography takes nothing else, whatever the stubs say.
            return paramiko.PKey.from_path(path, passphrase.encode())  # type: ignore[arg-type]  # see the line above
        except (ValueError, paramiko.SSHException):
            continue
    raise KeyUnusable(f"the passphrase was wrong {PASSPHRASE_TRIES} times")


def public_blob(path: Path) -> bytes | None:
    """The public half of the key in `path`, from the file beside it or from itself; None where neither tells."""
    for candidate in (path.with_name(f"{path.name}.pub"), path):
        try:
            fields = candidate.read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError):
            continue
        if len(fields) > 1 and not fields[0].startswith("-"):
            try:
                return base64.b64decode(fields[1], validate=True)
            except binascii.Error:
                continue
    return None


def _is_public(path: Path) -> bool:
    """An IdentityFile may name a public key: then only an agent has the rest."""
    with path.open("rb") as file:
        return not file.read(5).startswith(b"-----")


class _Agent(AgentSSH):
    """The agent behind one socket; the library's own knows only SSH_AUTH_SOCK."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(AGENT_S)
        connection.connect(os.fspath(path))
        self._connect(connection)  # type: ignore[attr-defined]  # the stubs leave out what subclasses are given


def _agent_keys(path: Path | None) -> list[paramiko.AgentKey]:
    """What the agent holds. A socket without an agent holds nothing, as for ssh."""
    if path is None:
        return []
    try:
        return list(_Agent(path).get_keys())
    except (OSError, paramiko.SSHException):
        return []
