"""A pair of stand-in engines as plain processes on loopback, as an embedded pair has them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dspark_deploy.rehearsal.standin import snapshots

PROGRAM = Path(snapshots.__file__).with_name("vllm.py")
HEAD, WORKER = "192.168.177.11", "192.168.177.12"
INTERFACE = "enp1s0f0np0"
LIMIT_S = 20


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Rank:
    """One rank's process and its log."""

    process: subprocess.Popen[bytes]
    log: Path
    pipe: int  # this end of the pipe that it lives by

    def text(self) -> str:
        """All that it printed so far."""
        return self.log.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until it has printed this."""
        deadline = time.monotonic() + LIMIT_S
        while text not in self.text():
            assert time.monotonic() < deadline, f"{text!r} is not in\n{self.text()}"
            time.sleep(0.01)


@dataclass
class Loopback:
    """Both ranks' surroundings: a folder that stands for each host's root, and free ports."""

    folder: Path
    api_port: int = field(default_factory=free_port)
    master_port: int = field(default_factory=free_port)
    ranks: list[Rank] = field(default_factory=list)

    def root(self, rank: int) -> Path:
        """The folder that is a rank's root. Made at first use, a small model in its cache."""
        root = self.folder / f"root{rank}"
        if not root.exists():
            (root / "dev/infiniband").mkdir(parents=True)
            (root / "dev/infiniband/uverbs0").touch()
            home = root / "cache/huggingface"
            snapshots.write_snapshot(
                home / "hub", snapshots.MODEL_0731, snapshots.REVISION_0731, encoder=True, shards=4
            )
        return root

    def switches(self, rank: int, **switches: object) -> None:
        """Set a rank's fault switches."""
        (self.root(rank) / "cache/huggingface/.stub.json").write_text(json.dumps(switches))

    def start(
        self,
        rank: int,
        *more: str,
        family: str = "anemll",
        python: str = sys.executable,
        program: Path = PROGRAM,
        environment: Mapping[str, str] | None = None,
    ) -> Rank:
        """Start a rank. `more` is added to its arguments, `environment` to its environment."""
        own, theirs = os.pipe()[::-1]
        address = WORKER if rank else HEAD
        endpoints = {f"{HEAD}:25000": f"127.0.0.1:{self.master_port}", "0.0.0.0:8888": f"127.0.0.1:{self.api_port}"}
        given = {
            "PATH": os.environ["PATH"],
            "NVIDIA_VISIBLE_DEVICES": "all",
            "VLLM_HOST_IP": address,
            "NCCL_SOCKET_IFNAME": INTERFACE,
            "GLOO_SOCKET_IFNAME": INTERFACE,
            "HF_HOME": "/cache/huggingface",
            "HF_HUB_OFFLINE": "1",
            "DSPARK_STANDIN_FAMILY": family,
            "DSPARK_STANDIN_ROOT": str(self.root(rank)),
            "DSPARK_STANDIN_ADDRESS_MAP": json.dumps({"local": {INTERFACE: address}, "endpoints": endpoints}),
            "DSPARK_STANDIN_PARENT_FD": str(theirs),
        }
        log = self.folder / f"rank{rank}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [python, str(program), "serve", *arguments(rank), *more],
                env={**given, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs],
            )
        os.close(theirs)
        self.ranks.append(Rank(process, log, own))
        return self.ranks[-1]

    def serve(self, *more: str, environment: Mapping[str, str] | None = None) -> tuple[Rank, Rank]:
        """Start both ranks and wait for the API."""
        worker = self.start(1, *more, environment=environment)
        head = self.start(0, *more, environment=environment)
        head.wait_for("Application startup complete.")
        return head, worker

    def ask(self, path: str, body: object = None, key: str | None = None) -> tuple[int, str]:
        """One request to the API: status and body."""
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.api_port}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def chat(self, **body: object) -> dict[str, Any]:
        """A chat that is answered."""
        full = {"model": "dsv4", "messages": [{"role": "user", "content": "Say something."}], **body}
        status, text = self.ask("/v1/chat/completions", full)
        assert status == 200, text
        answer: dict[str, Any] = json.loads(text)
        return answer

    def close(self) -> None:
        """End every rank by closing the pipe it lives by."""
        for rank in self.ranks:
            os.close(rank.pipe)
        for rank in self.ranks:
            rank.process.wait(LIMIT_S)


def arguments(rank: int) -> Sequence[str]:
    """A short line of `vllm serve` for a rank."""
    words = [snapshots.MODEL_0731, "--revision", snapshots.REVISION_0731, "--served-model-name", "dsv4", "alias"]
    words += ["--host", "0.0.0.0", "--port", "8888", "--tensor-parallel-size", "2", "--max-model-len", "350000"]
    words += ["--max-num-seqs", "6", "--gpu-memory-utilization", "0.85", "--kv-cache-dtype", "nvfp4_ds_mla"]
    words += ["--speculative-config", '{"method":"dspark","num_speculative_tokens":5}', "--block-size", "256"]
    words += ["--nnodes", "2", "--node-rank", str(rank), "--master-addr", HEAD, "--master-port", "25000"]
    return [*words, *(["--headless"] if rank else [])]


@contextmanager
def loopback(folder: Path) -> Iterator[Loopback]:
    """A pair that is ended at the end of the block."""
    pair = Loopback(folder)
    try:
        yield pair
    finally:
        pair.close()
