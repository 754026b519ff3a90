"""What a test can break on a node, and the way back to health."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Interface
from pathlib import Path
from types import MappingProxyType

from . import disk, hardware, network
from .host import wait_until
from .images import kept_tag
from .node import Node

KEPT_IN_HOME = {".ssh", ".cache"}
SMI = "/usr/local/bin/nvidia-smi"  # comes before the healthy one on PATH
GPU_APPS = "/run/gpu-apps"  # where that one looks


class FaultyNode(Node):
    """A node with switches. Every one of them is undone by `heal`, which a reset of the bed calls."""

    _has_other_mtu = False
    _other_addresses: Mapping[str, str | None] = MappingProxyType({})  # by the cable's name

    # --- sshd ---------------------------------------------------------------------------------------------------

    def stop_sshd(self, *, sessions: bool = False) -> None:
        """End sshd's listener: new connections are refused. `sessions` ends those that are open too."""
        self._signal_sshd(signal.SIGKILL)
        self.path("/run/sshd.pid").unlink(missing_ok=True)
        if sessions:
            self.cut_sessions()

    def cut_sessions(self) -> None:
        """End every connection that is open; new ones are taken."""
        pids = [_inner_pid(process.pid) for process in self.processes() if process.argv.startswith("sshd:")]
        if pids:
            self.exec(["kill", "-KILL", *pids])

    def hang_sshd(self) -> None:
        """Stop the listener: connections are made by the kernel and no banner comes."""
        self._signal_sshd(signal.SIGSTOP)

    def resume_sshd(self) -> None:
        """Let a hanging listener go on."""
        self._signal_sshd(signal.SIGCONT)

    def _signal_sshd(self, number: signal.Signals) -> None:
        with suppress(OSError):
            self.exec(["kill", f"-{number.name[3:]}", self.read("/run/sshd.pid").strip()])

    def new_host_key(self) -> None:
        """Give sshd another host key, as a machine that was installed anew has."""
        new = self.folder / "new_host_key"
        for path in (new, new.with_suffix(".pub")):
            path.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(new)], check=True)
        self.write("/etc/ssh/ssh_host_ed25519_key", new.read_text(), mode=0o600)
        self.stop_sshd()
        self.start_sshd()

    def refuse_key(self) -> None:
        """Let no key log in any more."""
        self.write_authorized_keys("")

    # --- dockerd and images -------------------------------------------------------------------------------------

    def stop_dockerd(self) -> None:
        """Stop dockerd in an orderly way; it stops its containers."""
        self._end_dockerd("TERM")

    def kill_dockerd(self) -> None:
        """Kill dockerd: its containers go on."""
        self._end_dockerd("KILL")

    def _end_dockerd(self, how: str) -> None:
        with suppress(FileNotFoundError):
            pid = self.read("/run/docker.pid").strip()
            self.exec(["kill", f"-{how}", pid])
            wait_until(lambda: self.exec(["test", "-d", f"/proc/{pid}"]).returncode != 0, 30, "the end of dockerd")

    def remove_image(self, reference: str) -> None:
        """Take an image's tag away, as if it had never been pulled."""
        self.api.untag(reference)

    def restore_image(self, reference: str) -> None:
        """Give an image its own tag back."""
        self.api.tag(self.image_ids[kept_tag(reference)], reference)

    def put_image(self, content: str, reference: str) -> None:
        """Put the image that belongs under the tag `content` under another tag too."""
        self.api.tag(self.image_ids[content], reference)

    def use_compose(self, version: str) -> None:
        """Choose the compose plugin: `stable` (2.26, drops `gpus:`), `newer`, or `none`."""
        link = self.path(f"/{disk.PLUGIN_LINK}")
        link.unlink(missing_ok=True)
        if version != "none":
            link.symlink_to(disk.PLUGINS[version])

    # --- power and cables ---------------------------------------------------------------------------------------

    def power_off(self) -> None:
        """Cut the power: all ends at once, and no packet is answered any more."""
        for cable in self._wired():
            network.plug(cable, connected=False)
        self.end()

    def power_on(self) -> None:
        """Start again on the same disk, daemons included, and wait for them."""
        self.boot()
        for cable in self._wired():
            network.plug(cable, connected=True)
        self.start_dockerd(wait=False)
        self.start_sshd()
        self.wait_for_dockerd()

    def _wired(self) -> list[network.Cable]:
        return [cable for cable in self.cables.values() if cable.address]

    def pull_cable(self) -> None:
        """Pull the fabric cable: no carrier, RDMA ports down; the LAN stays."""
        self._set_cable(connected=False)

    def plug_cable(self) -> None:
        """Put the fabric cable back in."""
        self._set_cable(connected=True)

    def _set_cable(self, *, connected: bool) -> None:
        for name in ("fabric", "fabric2"):
            network.plug(self.cables[name], connected=connected)
            hardware.set_port_state(self.folder / "infiniband", self.cables[name].interface, active=connected)

    def set_fabric(self, **addresses: str | None) -> None:
        """Give RDMA ports other addresses, or none: `set_fabric(fabric="169.254.17.4/16", fabric2=None)`.

        A port without a cable that gets an address (`spare`) is cabled, too.
        """
        for name, address in addresses.items():
            network.set_address(self.cables[name], address)
            if self.cables[name].address is None:
                network.plug(self.cables[name], connected=address is not None)
        self._other_addresses = {**self._other_addresses, **addresses}
        now = {name: cable.address for name, cable in self.cables.items() if name != "lan"} | self._other_addresses
        ips = {self.cables[name].interface: IPv4Interface(address).ip for name, address in now.items() if address}
        hardware.write_infiniband(self.folder / "infiniband", ips, self._gid_index)
        for name in ("fabric", "fabric2"):  # a cable is a link, with an address on it or without
            hardware.set_port_state(self.folder / "infiniband", self.cables[name].interface, active=True)

    def _reset_fabric(self) -> None:
        if self._other_addresses:
            self.set_fabric(**{name: self.cables[name].address for name in self._other_addresses})
            self._other_addresses = {}

    def set_mtu(self, *, end: int | None = None, hop: int | None = None) -> None:
        """Give the first fabric interface, or the hop behind it, another MTU."""
        network.set_mtu(self.cables["fabric"], end=end, hop=hop)
        self._has_other_mtu = bool(end or hop)

    def pull_lan(self) -> None:
        """Pull the LAN cable: the client's packets get no answer."""
        network.plug(self.cables["lan"], connected=False)

    def plug_lan(self) -> None:
        """Put the LAN cable back in."""
        network.plug(self.cables["lan"], connected=True)

    # --- disk and hardware --------------------------------------------------------------------------------------

    def fill_disk(self) -> None:
        """Leave no byte free."""
        most = "fallocate -l $(df --output=avail -B1 / | tail -1) /var/bed-fill"
        self.exec(["sh", "-c", f"{most}; dd if=/dev/zero of=/var/bed-fill2 bs=4k"])

    def free_disk(self) -> None:
        """Take the filler away."""
        for name in ("/var/bed-fill", "/var/bed-fill2"):
            self.path(name).unlink(missing_ok=True)

    def set_gid_index(self, index: int) -> None:
        """Move the RoCE v2 row of both wired ports, as a reboot may."""
        self.write_hardware(gid_index=index)
        self.stub()

    def set_memory(self, **kilobytes: int) -> None:
        """Change lines of /proc/meminfo: `set_memory(MemAvailable=20_000_000)`."""
        self.write_hardware(**kilobytes)

    def write_hca(self, device: str, name: str, text: str) -> None:
        """Change a file of an RDMA device, `fw_ver` or `device/current_link_width` for example."""
        (self.folder / "infiniband" / device / name).write_text(text + "\n")

    def hide_gpu(self) -> None:
        """Have nvidia-smi find none."""
        self.write(SMI, "#!/bin/sh\necho 'No devices were found'\nexit 6\n", mode=0o755)

    def use_gpu(self, *rows: str) -> None:
        """Have nvidia-smi tell of processes that compute: `4242, /usr/bin/ollama, [N/A]`."""
        self.write(GPU_APPS, "".join(f"{row}\n" for row in rows))

    def break_gpu(self, message: str) -> None:
        """Have every container that wants the GPU fail to start with this message."""
        self.write("/run/bed-gpu-error", message + "\n")

    # --- back to health -----------------------------------------------------------------------------------------

    def heal(self) -> None:
        """Undo every fault; remove containers, releases, switches and whatever a test left running or lying about."""
        if not self.is_on:
            self.power_on()
        self.plug_lan()
        self.plug_cable()
        self._reset_fabric()
        self.free_disk()
        self.write_hardware()
        for path in ("/run/bed-gpu-error", GPU_APPS, SMI):
            self.path(path).unlink(missing_ok=True)
        if self._has_other_mtu:
            self.set_mtu()
        self.use_compose("stable")
        self._heal_dockerd()
        self._end_leftovers()
        self._heal_sshd()
        self._heal_files()
        self.mark()

    def _heal_dockerd(self) -> None:
        if not self.api.ping():
            self.kill_dockerd()
            self.start_dockerd()
        for container in self.api.containers():
            self.api.remove(container.id)
        if (tags := self.api.tags()) != self.image_ids:
            for reference in tags.keys() - self.image_ids.keys():
                self.api.untag(reference)
            for reference in self.image_ids:
                if tags.get(reference) != self.image_ids[reference]:
                    self.api.tag(self.image_ids[reference], reference)

    def _end_leftovers(self) -> None:
        for process in self.processes():
            self.exec(["kill", "-KILL", _inner_pid(process.pid)])

    def _heal_sshd(self) -> None:
        self.write_authorized_keys(self.authorized_key)
        if self.read("/etc/ssh/ssh_host_ed25519_key") != (self.folder / "host_key").read_text():
            self.stop_sshd()
        self.write_ssh_server()
        self.resume_sshd()
        if not self._sshd_runs():
            self.start_sshd()

    def _sshd_runs(self) -> bool:
        return self.path("/run/sshd.pid").exists()

    def _heal_files(self) -> None:
        home = self.path(self.home)
        for path in home.iterdir():
            if path.name not in KEPT_IN_HOME:
                _remove(path)
        for folder in ("/tmp", "/var/tmp", "/srv", "/dev/shm"):
            for path in self.path(folder).iterdir():
                _remove(path)
        if not self.models_are_pristine:
            self.write_models()
        self.stub()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _inner_pid(pid: int) -> str:
    """A process's pid as its own namespace knows it; 0 names none."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return line.split()[-1]
    return "0"
