"""Real OpenSSH servers on loopback, a process a connection, as inetd would run them: nothing to wait for."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Self

from dspark_deploy.inventory.host import HostSpec
from dspark_deploy.remote.connect import open_host
from dspark_deploy.remote.host import Host

SSHD = "/usr/sbin/sshd"


def missing_sshd() -> str:
    """Why no server can be run here; empty where one can."""
    missing = [program for program in (SSHD, "ssh", "ssh-keygen") if shutil.which(program) is None]
    return f"{', '.join(missing)} missing: apt install openssh-server openssh-client" if missing else ""


def make_key(path: Path, passphrase: str = "") -> Path:
    """A new key pair."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", path], check=True)
    return path


def fingerprint_of(key: Path) -> str:
    """As ssh-keygen prints it."""
    listed = subprocess.run(["ssh-keygen", "-l", "-f", key], check=True, capture_output=True, text=True)
    return listed.stdout.split()[1]


class Sshd:
    """One server. `client_key` opens it; `config` is the ssh config that leads there, as `Host node`."""

    def __init__(self, folder: Path, home: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.home = home
        self.host_key = make_key(folder / "host_key")
        self.client_key = make_key(folder / "client_key")
        self.known_hosts = folder / "known_hosts"
        self.config = folder / "config"
        self.environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        self.options: dict[str, str] = {}  # of sshd_config
        self.silent = False  # accept connections and say nothing
        self.processes: list[subprocess.Popen[bytes]] = []
        self._kept: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.write_config()
        self.trust()

    def __enter__(self) -> Self:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # where a server that root starts locks itself in
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Refuse connections from now on, and end those that are open."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.signal(signal.SIGKILL)
        for kept in self._kept:
            kept.close()

    def signal(self, number: signal.Signals) -> None:
        """To the server of every connection, and to what serves its sessions."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            if number == signal.SIGKILL:
                process.wait()

    def write_config(self, **options: str) -> None:
        """The ssh config on the controller."""
        settings = {
            "HostName": "127.0.0.1",
            "Port": str(self.port),
            "User": getpass.getuser(),
            "IdentityFile": str(self.client_key),
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": str(self.known_hosts),
            "GlobalKnownHostsFile": "none",
            **options,
        }
        self.config.write_text("Host node\n" + "".join(f"  {name} {value}\n" for name, value in settings.items()))

    def trust(self, key: Path | None = None, name: str | None = None) -> None:
        """Have known_hosts hold this host key, the server's own by default, and nothing else."""
        kind, blob = (key or self.host_key).with_suffix(".pub").read_text().split()[:2]
        self.known_hosts.write_text(f"{name or f'[127.0.0.1]:{self.port}'} {kind} {blob}\n")

    def open(self, *, accept_new_host_keys: bool = False) -> Host:
        """Connect as the tool would."""
        return open_host("worker", HostSpec("node"), ssh_config=self.config, accept_new_host_keys=accept_new_host_keys)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # stopped
                return
            if self.silent:
                self._kept.append(connection)
                continue
            with connection:
                self.processes.append(self._serve(connection))

    def _serve(self, connection: socket.socket) -> subprocess.Popen[bytes]:
        authorized = self.folder / "authorized_keys"
        authorized.write_bytes(self.client_key.with_suffix(".pub").read_bytes())
        settings = {
            "AuthorizedKeysFile": str(authorized),
            "HostKey": str(self.host_key),
            "LogLevel": "VERBOSE",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "yes",
            "SetEnv": " ".join(f"{name}={value}" for name, value in self.environment.items()),
            "StrictModes": "no",
            "UsePAM": "no",
            **self.options,
        }
        config = self.folder / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        log = (self.folder / "sshd.log").open("ab")
        with log:
            return subprocess.Popen(
                [SSHD, "-i", "-e", "-f", config],
                stdin=connection.fileno(),
                stdout=connection.fileno(),
                stderr=log,
                start_new_session=True,
            )
