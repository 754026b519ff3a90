"""One host of the bed: how it starts and what it is given. What breaks it is in faults.py."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from . import disk, hardware
from .host import PATH, SSH_PORTS, Host, Identity, address_of, wait_until
from .keeper import Names

NODE_SH = Path(__file__).with_name("node.sh")
SWITCHES = ".stub.json"


class Node(Host):
    """A host with its life: PID 1 in namespaces of its own, its disk, its sshd and its dockerd."""

    def __init__(self, identity: Identity, names: Names, fill_cache: Callable[[Path], None]) -> None:
        super().__init__(identity, names)
        self.folder = names.state / identity.role
        self._fill_cache = fill_cache
        self.authorized_key = ""
        self.image_ids: dict[str, str] = {}
        """Every tag as the node has it in health -> image id."""
        self._gid_index = identity.gid_index
        self._launcher: subprocess.Popen[bytes] | None = None
        self._hf_listing: list[tuple[str, str, int, int]] = []

    def prepare(self, golden: Path | None, binds: Mapping[str, Path]) -> None:
        """Lay out the folder of a node that is about to start for the first time."""
        for name in ("disk", "root", "sys"):
            (self.folder / name).mkdir(parents=True)
        if golden:
            disk.copy(golden, self.folder / "disk.img")
        self.write_hardware()
        (self.folder / "fstab").write_text(disk.fstab(self.folder, dict(binds)))
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"host {self.alias}", "-f"]
        subprocess.run([*argv, str(self.folder / "host_key")], check=True)

    def write_hardware(self, gid_index: int | None = None, **meminfo_kb: int) -> None:
        """Write RDMA ports and memory as they are on a healthy node, but for what is given."""
        addresses = {c.interface: address_of(c) for name, c in self.cables.items() if name != "lan" and c.address}
        self._gid_index = gid_index or self.identity.gid_index
        hardware.write_infiniband(self.folder / "infiniband", addresses, self._gid_index)
        (self.folder / "meminfo").write_text(hardware.meminfo(meminfo_kb))  # in place: it is mounted by its inode

    def boot(self) -> None:
        """Start PID 1 and wait for its file systems. The daemons are not started."""
        pid_file = self.folder / "pid.new"
        pid_file.write_text("")
        argv = [
            "setsid",
            "nsenter",
            f"--net=/run/netns/{self.names.namespace(self.identity.role)}",
            "unshare",
            "--mount",
            "--uts",
            "--ipc",
        ]
        argv += [
            "--pid",
            "--fork",
            "--propagation",
            "private",
            "bash",
            str(NODE_SH),
            str(self.folder),
            self.alias,
        ]
        log = self.folder / "boot.log"
        with log.open("wb") as output:
            self._launcher = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        wait_until(lambda: pid_file.read_text().endswith("\n") or self._launcher_ended(log), 20, "PID 1")
        self.pid = int(pid_file.read_text())

    def _launcher_ended(self, log: Path) -> bool:
        if self._launcher and self._launcher.poll() is not None:
            raise RuntimeError(f"{self.alias} did not start: {log.read_text().strip()}")
        return False

    def end(self) -> None:
        """End PID 1 and with it all that runs on the node."""
        os.kill(self.pid, signal.SIGKILL)
        self.is_gone()

    def is_gone(self) -> None:
        """Take note that PID 1 was ended, by whoever it was."""
        if self._launcher:
            self._launcher.wait(20)
            self._launcher = None
        self.pid = 0

    def settle(self) -> None:
        """Give a node its names, keys and models. Once, after its first boot."""
        hosts = {"127.0.0.1": "localhost", "10.77.0.1": "spark-head", "10.77.0.2": "spark-worker"}
        hosts["10.77.0.254"] = "ghcr.io"  # where a test's registry listens; dockerd rereads this file after 5 s only
        self.write("/etc/hosts", "".join(f"{address} {name}\n" for address, name in hosts.items()))
        self.write("/etc/hostname", self.alias + "\n")
        self.write("/etc/resolv.conf", "")
        self.write_ssh_server()
        self.write_authorized_keys(self.authorized_key)
        self.write_models()
        self.stub()

    def write_accounts(self) -> None:
        """Give the node its one login, in group docker. Before dockerd starts, whose socket belongs to that group.

        It has no password: `*`, since sshd takes a `!` for a locked account and refuses keys too.
        """
        name, uid = self.identity.user, self.identity.uid
        home = self.path(self.home)
        home.mkdir(mode=0o750)
        os.chown(home, uid, uid)
        system = [line for line in Path("/etc/passwd").read_text().splitlines() if int(line.split(":")[2]) < 1000]
        self.write("/etc/passwd", "\n".join([*system, f"{name}:x:{uid}:{uid}::{self.home}:/bin/bash", ""]))
        shadow = "".join(f"{line.split(':')[0]}:*:20000:0:99999:7:::\n" for line in system)
        self.write("/etc/shadow", shadow + f"{name}:*:20000:0:99999:7:::\n", mode=0o640)
        lines = Path("/etc/group").read_text().splitlines()
        groups = [line for line in lines if not line.startswith("docker:") and int(line.split(":")[2]) < 1000]
        self.write("/etc/group", "\n".join([*groups, f"docker:x:990:{name}", f"{name}:x:{uid}:", ""]))

    def write_ssh_server(self) -> None:
        """Put the host key and configuration of sshd in place."""
        self.write("/etc/ssh/ssh_host_ed25519_key", (self.folder / "host_key").read_text(), mode=0o600)
        ports = "".join(f"Port {port}\n" for port in SSH_PORTS)
        self.write("/etc/ssh/sshd_config", f"{ports}{_SSHD_CONFIG.format(path=PATH)}")

    def write_authorized_keys(self, keys: str) -> None:
        """Say which keys may log in as the node's user."""
        self.write(f"{self.home}/.ssh/authorized_keys", keys, mode=0o600, owner=self.identity.uid)

    def write_models(self) -> None:
        """Fill the Hugging Face cache anew."""
        cache = self.path(f"{self.home}/.cache")
        shutil.rmtree(cache, ignore_errors=True)
        self._fill_cache(self.path(self.hf_home))
        for path in (cache, *cache.rglob("*")):
            os.chown(path, self.identity.uid, self.identity.uid, follow_symlinks=False)
        self._hf_listing = self._list_models()

    @property
    def models_are_pristine(self) -> bool:
        return self._list_models() == self._hf_listing

    def _list_models(self) -> list[tuple[str, str, int, int]]:
        found = []
        for folder, folders, files in os.walk(self.path(self.hf_home)):
            for name in (*folders, *files):
                path = os.path.join(folder, name)  # noqa: PTH118  hundreds of files before every test
                status = os.lstat(path)
                link = os.readlink(path) if name in files and os.path.islink(path) else ""  # noqa: PTH114, PTH115
                if name != SWITCHES:
                    found.append((path.split("huggingface", 1)[1], link, status.st_size, status.st_mtime_ns))
        return sorted(found)

    def start_sshd(self) -> None:
        """Start sshd and wait until it listens."""
        self.exec(["mkdir", "-p", "/run/sshd"]).check()
        self.exec(["/usr/sbin/sshd", "-E", "/var/log/sshd.log"]).check()
        wait_until(self.path("/run/sshd.pid").exists, 5, "sshd")

    def start_dockerd(self, *, wait: bool = True) -> None:
        """Start dockerd, by default waiting until it answers."""
        self.path("/run/docker.pid").unlink(missing_ok=True)
        command = " ".join(
            [
                "setsid dockerd -p /run/docker.pid -H unix:///run/docker.sock --exec-root /run/docker",
                f"--cgroup-parent /{self.names.cgroup(self.identity.role)} --exec-opt native.cgroupdriver=cgroupfs",
                ">> /var/log/dockerd.log 2>&1 < /dev/null &",
            ]
        )
        self.exec(["env", f"PATH=/usr/local/lib/bed:{PATH}", "sh", "-c", command]).check()
        if wait:
            self.wait_for_dockerd()

    def wait_for_dockerd(self) -> None:
        """Wait until dockerd answers."""
        try:
            wait_until(self.api.ping, 30, f"dockerd of {self.alias}")
        except AssertionError as error:
            error.add_note("".join(self.read("/var/log/dockerd.log").splitlines(keepends=True)[-20:]))
            raise

    def stub(self, **switches: object) -> None:
        """Set the stand-in engine's switches on this node, in place of earlier ones; none at all is health."""
        document = json.dumps({"gid_index": self._gid_index, **switches})
        self.write(f"{self.hf_home}/{SWITCHES}", document, owner=self.identity.uid)

    @property
    def public_host_key(self) -> str:
        """Kind and key, as known_hosts wants them."""
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])


_SSHD_CONFIG = """\
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile /run/sshd.pid
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
UseDNS no
PrintMotd no
AcceptEnv LANG LC_*
SetEnv PATH={path}
LogLevel VERBOSE
Subsystem sftp /usr/lib/openssh/sftp-server
"""
