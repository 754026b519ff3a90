"""One host of the bed as the tests see it: its files, its processes, its containers, and a way to run things on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

from . import network
from .docker_api import Container, DockerApi
from .keeper import Names
from .packages import SYSTEM_PATH
from .run import Ran, run

PATH = f"/usr/local/sbin:/usr/local/bin:{SYSTEM_PATH}"
SSH_PORTS = (22, 2222)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a node is. The two differ in everything that two real ones may differ in."""

    role: str  # head or worker
    user: str
    uid: int
    number: int  # the last part of its LAN address; its fabric addresses end in 10 more
    gid_index: int  # of the RoCE v2 row with the fabric's IPv4

    @property
    def alias(self) -> str:
        return f"spark-{self.role}"


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a node, by its pid outside of it."""

    pid: int
    argv: str
    user: int


class Host:
    """A host that runs, by the pid of its PID 1; 0 is a host that is off."""

    def __init__(self, identity: Identity, names: Names) -> None:
        self.identity = identity
        self.names = names
        self.user = identity.user
        self.alias = identity.alias
        self.home = f"/home/{identity.user}"
        self.hf_home = f"{self.home}/.cache/huggingface"
        self.cables = network.cables(names, identity.role, identity.number)
        self.lan_address = address_of(self.cables["lan"])
        self.fabric_address = address_of(self.cables["fabric"])
        self.fabric_interface = self.cables["fabric"].interface
        self.pid = 0
        self._log_mark = 0

    @property
    def is_on(self) -> bool:
        return self.pid != 0

    # --- looking ------------------------------------------------------------------------------------------------

    def path(self, path: str | Path) -> Path:
        """A path on the node, seen from outside. An absolute symbolic link on the way would lead out of the node."""
        return Path(f"/proc/{self.pid}/root{path}")

    def read(self, path: str) -> str:
        """The text of a file on the node."""
        return self.path(path).read_text()

    def write(self, path: str, text: str, *, mode: int = 0o644, owner: int = 0) -> None:
        """Put a file on the node, in place of whatever is there."""
        target = self.path(path)
        if not target.parent.is_dir():
            target.parent.mkdir(parents=True, mode=0o755 if mode & 0o044 else 0o700)
            os.chown(target.parent, owner, owner)
        target.unlink(missing_ok=True)
        target.write_text(text)
        target.chmod(mode)
        os.chown(target, owner, owner)

    @property
    def api(self) -> DockerApi:
        """The node's dockerd, asked directly."""
        return DockerApi(self.path("/run/docker.sock"))

    def containers(self) -> list[Container]:
        """All containers on the node, stopped ones included."""
        return self.api.containers()

    def running(self) -> list[Container]:
        """The containers that run."""
        return [container for container in self.containers() if container.state == "running"]

    def logs(self, container: str) -> str:
        """What a container printed, both streams in order."""
        return self.exec(["sh", "-c", 'docker logs "$0" 2>&1', container]).check().stdout

    def processes(self) -> list[Process]:
        """Every process on the node but the bed's own: PID 1, sshd's listener, dockerd and its containerd."""
        found = []
        own = self._own_pids()
        for pid in self.pids() - own:
            with suppress(OSError):
                argv = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if argv:  # empty for one that is gone but for its exit code
                    found.append(Process(pid, argv, Path(f"/proc/{pid}").stat().st_uid))
        return sorted(found, key=lambda process: process.pid)

    def pids(self) -> set[int]:
        """Every process on the node, by its pid outside of it."""
        wanted = Path(f"/proc/{self.pid}/ns/pid").stat().st_ino
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if (entry / "ns/pid").stat().st_ino == wanted:
                        found.add(int(entry.name))
        return found

    def _own_pids(self) -> set[int]:
        own = {self.pid}
        for pid in self.pids():
            with suppress(OSError):
                argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                is_daemon = Path(os.fsdecode(argv[0])).name in {"dockerd", "containerd"} or argv[0].startswith(
                    b"sshd: /usr"
                )
                if (argv[0] == b"sleep" and parent == self.pid) or is_daemon:
                    own.add(pid)
        return own

    def listening(self) -> set[int]:
        """TCP ports that something listens on, sshd's own left out."""
        ports = set()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{self.pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A":
                    ports.add(int(fields[1].rpartition(":")[2], 16))
        return ports - set(SSH_PORTS)

    def mark(self) -> None:
        """Count SSH connections from here on."""
        self._log_mark = len(self.ssh_log(whole=True))

    def ssh_log(self, *, whole: bool = False) -> str:
        """What sshd logged since the mark."""
        try:
            text = self.read("/var/log/sshd.log")
        except FileNotFoundError:
            return ""
        return text if whole else text[self._log_mark :]

    def ssh_connections(self) -> int:
        """How many connections logged in since the mark; a reset sets it."""
        return self.ssh_log().count("Accepted publickey")

    def ssh_sessions(self) -> int:
        """How many commands and subsystems were started over those connections since the mark."""
        return self.ssh_log().count("Starting session:")

    # --- doing --------------------------------------------------------------------------------------------------

    def exec(self, argv: Sequence[str], *, timeout: float = 60, stdin: str = "") -> Ran:
        """Run a program as root on the node."""
        return run([*self.entry(), *argv], timeout=timeout, stdin=stdin)

    def as_user(self, argv: Sequence[str], *, timeout: float = 60, stdin: str = "") -> Ran:
        """Run a program as the node's user, in its home."""
        who = [f"--reuid={self.user}", f"--regid={self.user}", "--init-groups"]
        names = [f"HOME={self.home}", f"USER={self.user}", f"LOGNAME={self.user}"]
        in_home = ["sh", "-c", 'cd && exec "$@"', "sh"]
        return self.exec(["setpriv", *who, "env", *names, *in_home, *argv], timeout=timeout, stdin=stdin)

    def docker(self, *argv: str, timeout: float = 60) -> Ran:
        """Run the docker client as root on the node."""
        return self.exec(["docker", *argv], timeout=timeout)

    def entry(self) -> list[str]:
        """The words before a command that has it run as root on the node."""
        settings = [f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8"]
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "--", "env", "-i", *settings]


def address_of(cable: network.Cable) -> IPv4Address:
    """The address of a wired port."""
    assert cable.address, cable.interface
    return IPv4Interface(cable.address).ip


def wait_until(condition: Callable[[], object], limit_s: float = 10, what: str = "it") -> None:
    """Wait until a condition holds. AssertionError past the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {limit_s:.0f} s for {what} in vain"
        time.sleep(0.005)
