"""The pair of real ranks as these tests see it: dspark's commands, the served API, each rank's container."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.bed.bed import Bed
from tests.bed.host import wait_until
from tests.bed.node import Node
from tests.bed.packages import cache_folder
from tests.bed.run import Ran
from tests.bed.tool import DSPARK, result

PROFILES = Path(__file__).with_name("profiles")
MODEL = "tiny-llama"
PORT = 8888
BOOT_S = 900  # a boot takes about a minute; the machine may be busy
ASK = """
import sys, urllib.error, urllib.request
url, key, limit, body = sys.argv[1:]
headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
request = urllib.request.Request(url, body.encode() or None, headers)
try:
    with urllib.request.urlopen(request, timeout=float(limit)) as answer:
        print(answer.status, answer.read().decode(), sep="\\n")
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode(), sep="\\n")
except OSError as error:
    print(0, error, sep="\\n")
"""


class Pair:
    """Both nodes, with the tests' own profiles beside the inventory."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.commands: list[Ran] = []
        """Everything that was run since the last test ended."""
        self.profiles = bed.client / "profiles"
        shutil.copytree(PROFILES, self.profiles)

    def dspark(self, *words: str, timeout: float = 60, **inventory: Any) -> Ran:
        """Run one command line of dspark. `inventory` changes the inventory."""
        self.bed.inventory(**{"profile": "tiny", **inventory})
        ran = self.bed.run([DSPARK, *words], timeout=timeout)
        self.commands.append(ran)
        return ran

    def up(self, *words: str, **inventory: Any) -> Ran:
        """`dspark up`, with the time that a boot takes on a busy machine."""
        limits = ("--rendezvous-timeout", "5m", "--timeout", "8m")
        return self.dspark("up", "--yes", *limits, *words, "--output", "json", timeout=BOOT_S, **inventory)

    def told(self, *words: str, timeout: float = 60, **inventory: Any) -> Any:
        """The `result` of a command, whatever its exit code."""
        return result(self.dspark(*words, "--output", "json", timeout=timeout, **inventory))

    def ask(self, path: str, body: object = None, *, key: str = "", limit_s: float = 60) -> tuple[int, str]:
        """One request over the head's management address: status (0 when none came in time), and body."""
        url = f"http://{self.bed.head.lan_address}:{PORT}{path}"
        text = "" if body is None else json.dumps(body)
        ran = self.bed.run([sys.executable, "-c", ASK, url, key, str(limit_s), text], timeout=limit_s + 20)
        self.commands.append(ran)
        status, _, answer = ran.stdout.partition("\n")
        return int(status), answer

    def say(self, text: str = "Say something.", *, limit_s: float = 60, **more: object) -> tuple[int, str]:
        """One short chat."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": 16, **more}
        return self.ask("/v1/chat/completions", body, limit_s=limit_s)

    def vary_family(self, name: str, old: str, new: str) -> None:
        """Put a family beside `cpu` that differs from it in one line."""
        folder = self.profiles / "families"
        text = (folder / "cpu.yaml").read_text()
        assert old in text
        (folder / f"{name}.yaml").write_text(text.replace("name: cpu", f"name: {name}").replace(old, new))

    def log(self, node: Node) -> str:
        """What the node's rank has printed."""
        (container,) = node.containers()
        return node.logs(container.id)

    def explained(self) -> Any:
        """What `explain` makes of both ranks' logs as they are now."""
        files = []
        for node in self.bed.nodes:
            files.append(self.bed.client / f"{node.identity.role}.log")
            files[-1].write_text(self.log(node))
        return self.told("explain", *map(str, files))

    def rendered(self, node: Node, name: str) -> str:
        """The path of a rendered file in the node's newest release; an `up` that fails pushes one where none is."""
        releases = f"{node.home}/.local/share/dspark/spark-pair/releases"
        if not node.path(releases).is_dir():
            self.dspark("up", "--rendezvous-timeout", "1s")
        newest = max(node.path(releases).iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
        return f"{releases}/{newest.name}/{name}"

    def start_by_hand(self) -> None:
        """Start both ranks of the newest release as somebody would who does without dspark."""
        for node in self.bed.nodes:
            for container in node.containers():
                node.api.remove(container.id)
        for node in reversed(self.bed.nodes):
            compose = self.rendered(node, "compose.yaml")
            node.as_user(["docker", "compose", "-f", compose, "up", "-d"]).check()

    def terminate(self, node: Node, signal: str) -> None:
        """Send a signal to the node's rank, and wait until it is gone."""
        (container,) = node.running()
        node.docker("kill", "--signal", signal, container.id).check()
        wait_until(lambda: not node.running(), 60, f"the end of the rank on {node.alias}")

    def keep(self, test: str) -> Path:
        """Write down what was run and what both ranks printed. Returns the folder."""
        folder = cache_folder() / "real-logs" / test
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "commands.log").write_text("\n\n".join(map(str, self.commands)))
        for node in self.bed.nodes:
            for container in node.containers() if node.api.ping() else ():
                (folder / f"{node.alias}.log").write_text(node.logs(container.id))
        runs = self.bed.client / ".local/state/dspark"
        if runs.is_dir():
            shutil.copytree(runs, folder / "runs", symlinks=True)
        return folder
