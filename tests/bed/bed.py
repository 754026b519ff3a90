"""The bed: two hosts, the cables between them, and a client that reaches nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.warm import WarmTool

from . import disk, network
from .faults import FaultyNode
from .host import Identity
from .keeper import Names, pids_in
from .packages import BedUnavailable, compose_binary
from .run import Ran, run
from .stock import STANDIN, Stock

CHECKOUT = Path(__file__).parents[2]
KEEPER = Path(__file__).with_name("keeper.py")
HEAD = Identity(role="head", user="nvidia", uid=1000, number=1, gid_index=3)
WORKER = Identity(role="worker", user="ubuntu", uid=1001, number=2, gid_index=5)
LOCK_WAIT_S = 900


class Bed:
    """Both hosts. `open` brings them up; `close`, or the end of this process in any way, takes everything down."""

    def __init__(self, stock: Stock = STANDIN, number: int = 0) -> None:
        """`number` tells the beds of a machine apart; there is one of each at a time."""
        self.names = Names(number)
        self._stock = stock
        self.client = self.names.state / "client"
        """The client's home and working folder."""
        self.keys = self.names.state / "keys"
        self.ssh_config = self.client / "ssh_config"
        """The user's ssh configuration: see _ssh_config for its aliases."""
        self.known_hosts = self.client / "known_hosts"
        self.head = FaultyNode(HEAD, self.names, stock.write_models)
        self.worker = FaultyNode(WORKER, self.names, stock.write_models)
        self.has_newer_compose = False
        self._tool: WarmTool | None = None
        self._keeper: subprocess.Popen[str] | None = None

    @property
    def nodes(self) -> tuple[FaultyNode, FaultyNode]:
        return self.head, self.worker

    @classmethod
    def start(cls, stock: Stock = STANDIN, number: int = 0) -> Bed:
        """Make a bed and open it."""
        bed = cls(stock, number)
        bed.open()
        return bed

    def open(self) -> None:
        """Bring up both hosts. Waits for another run's bed to end; raises BedUnavailable when it does not."""
        binds = {disk.PLUGINS["stable"]: compose_binary()}
        with suppress(BedUnavailable):  # a suite that moves: the bed does without it
            binds[disk.PLUGINS["newer"]] = compose_binary(newer=True)
        self.has_newer_compose = len(binds) > 1
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", str(KEEPER), str(self.names.number), str(LOCK_WAIT_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._keeper.stdout
        if self._keeper.stdout.readline().strip() != "ready":
            raise BedUnavailable(f"another test run has had the bed for more than {LOCK_WAIT_S} s")
        try:
            self._make_client()
            self._bring_up(binds)
        except BaseException:
            self.close()
            raise

    def _make_client(self) -> None:
        self.client.mkdir()
        self.keys.mkdir()
        for name in ("client", "stranger"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.keys / name)]
            subprocess.run(argv, check=True)
        for node in self.nodes:
            node.authorized_key = (self.keys / "client.pub").read_text()

    def _bring_up(self, binds: dict[str, Path]) -> None:
        network.build(self.names, (cable for node in self.nodes for cable in node.cables.values()))
        golden = disk.golden(self._stock, CHECKOUT, lambda image, archive: self._load_images(image, archive, binds))
        self._on_both(lambda node: self._start_node(node, golden, binds))
        self.write_client_files()

    def _start_node(self, node: FaultyNode, golden: Path, binds: dict[str, Path]) -> None:
        if not node.folder.exists():
            node.prepare(golden, binds)
        else:
            disk.copy(golden, node.folder / "disk.img")
        node.boot()
        node.write_accounts()
        node.start_dockerd(wait=False)
        node.settle()
        node.start_sshd()
        node.wait_for_dockerd()
        node.image_ids = node.api.tags()
        node.mark()

    def _load_images(self, image: Path, archive: Path, binds: dict[str, Path]) -> None:
        """Load the archive into a disk, on the head before its first real start."""
        self.head.prepare(None, binds)
        image.rename(self.head.folder / "disk.img")
        self.head.boot()
        self.head.write_accounts()
        self.head.start_dockerd()
        self.head.api.load(archive)
        self.head.stop_dockerd()
        self.head.path("/var/log/dockerd.log").unlink()
        self.head.path(self.head.home).rmdir()
        self.head.end()
        disk.copy(self.head.folder / "disk.img", image)

    @property
    def tool(self) -> WarmTool:
        """The tool on the client's LAN, to be forked; loaded at its first use and kept until the bed goes."""
        if self._tool is None:
            self._tool = WarmTool(self.environment(), self.on_lan())
        return self._tool

    def close(self) -> None:
        """Take everything down and wait until it is gone."""
        if self._tool:
            self._tool.close()
            self._tool = None
        if self._keeper and self._keeper.stdin:
            self._keeper.stdin.close()
            self._keeper.wait(30)
            self._keeper = None
        for node in self.nodes:
            node.is_gone()

    def reset(self) -> None:
        """Bring both hosts and the client's folder back to health and emptiness. Quick where nothing was broken."""
        kept = {self._tool.pid} if self._tool else set()
        for pid in set(pids_in([self.names.lan])) - kept:  # programs of the client that a test left running
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._on_both(FaultyNode.heal)
        for path in self.client.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        self.write_client_files()

    def _on_both(self, act: Callable[[FaultyNode], None]) -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(act, self.nodes))

    def write_client_files(self) -> None:
        """Write the client's ssh configuration and known hosts as they are when all is well."""
        lines = []
        for node in self.nodes:
            names = [
                str(node.lan_address),
                f"[{node.lan_address}]:2222",
                str(node.fabric_address),
                node.alias,
            ]
            lines.append(f"{','.join(names)} {node.public_host_key}\n")
        self.known_hosts.write_text("".join(lines))
        self.ssh_config.write_text(self._ssh_config())

    def _ssh_config(self) -> str:
        """The aliases, beside spark-head and spark-worker themselves.

        -2222: the other port. spark-worker-jump: the fabric address, through the head. -stranger: a key that is not
        let in. -unknown: a known_hosts file without the host. spark-nowhere: an address with no machine. A node without
        power answers nothing: how long that is waited for is said here, since many tests do.
        """
        key, stranger, empty = self.keys / "client", self.keys / "stranger", self.client / "known_hosts_empty"
        text = f"Host spark-*-stranger\n  IdentityFile {stranger}\nHost spark-*-unknown\n  UserKnownHostsFile {empty}\n"
        text += "Host spark-*-2222\n  Port 2222\n"
        jump = f"Host spark-worker-jump\n  HostName {self.worker.fabric_address}\n  ProxyJump spark-head\n"
        text += jump + "Host spark-nowhere\n  HostName 10.77.0.99\n  User nvidia\n"
        for node in self.nodes:
            text += f"Host {node.alias}*\n  HostName {node.lan_address}\n  User {node.user}\n"
        return text + (
            f"Host * !spark-*-stranger\n  IdentityFile {key}\nHost *\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile /dev/null\n  ConnectTimeout 4\n"
        )

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """The client's environment: this process's, less what could reach the tool under test, with its own home."""
        dropped = (
            "DSPARK_",
            "SSH_",
            "XDG_",
            "DOCKER_",
            "COMPOSE_",
            "HF_",
            "VLLM_",
            "PYTEST_",
            "NO_COLOR",
            "COLUMNS",
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        return {**kept, "HOME": str(self.client), "LANG": "C.UTF-8", **(env or {})}

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout: float = 60,
    ) -> Ran:
        """Run a program as the client: in its folder, on its LAN, with no way anywhere else.

        `env` is added to `environment()`. Past `timeout` the program is killed: subprocess.TimeoutExpired.
        """
        return run(self.on_lan(*argv), env=self.environment(env), cwd=self.client, stdin=stdin, timeout=timeout)

    def popen(self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a program as the client, in a process group of its own, with pipes for all three streams."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.on_lan(*argv),
            env=self.environment(env),
            cwd=self.client,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    def on_lan(self, *argv: str | Path) -> list[str]:
        """The words of a command that runs on the client's LAN and reaches nothing else."""
        return ["nsenter", f"--net=/run/netns/{self.names.lan}", "--", *map(str, argv)]

    def inventory(self, **changes: Any) -> Path:
        """Write an inventory of this pair into the client's folder and return its path.

        `changes` replaces values; a name with two underscores goes into a section: `head__host="spark-head-2222"`,
        `worker__fabric__gid_index=5`, `api__port=8899`. None takes a key out.
        """
        values: dict[str, Any] = {
            "name": "spark-pair",
            "profile": "agent-1m",
            "ssh_config": str(self.ssh_config),
        }
        for node in self.nodes:
            fabric = {
                "interface": node.fabric_interface,
                "address": str(node.fabric_address),
                "hca": "=rocep1s0f0,roceP2p1s0f0",
                "gid_index": "auto",
            }
            values[node.identity.role] = {"host": node.alias, "fabric": fabric}
        values["api"] = {"bind": "0.0.0.0", "port": 8888}
        values["master_port"] = 25000
        for name, value in changes.items():
            *sections, key = name.split("__")
            place = values
            for section in sections:
                place = place.setdefault(section, {})
            if value is None:
                place.pop(key, None)
            else:
                place[key] = value
        path = self.client / "inventory.yaml"
        path.write_text(_yaml(values))
        return path


def _yaml(values: Mapping[str, Any], indent: str = "") -> str:
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{key}:\n{_yaml(value, indent + '  ')}")
        else:
            text = f'"{value}"' if isinstance(value, str | Path) else str(value).lower()
            lines.append(f"{indent}{key}: {text}\n")
    return "".join(lines)
