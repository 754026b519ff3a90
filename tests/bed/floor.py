"""The least that brings a pair up by hand, as one process: what `dspark up` is measured against.

One SSH connection a node (both at once), the rendered files written by one command, `docker compose up -d` on the
worker, then on the head, and a poll until the first answer. No lock, no check, no wait for the rendezvous, no proof.
Usage: floor.py CONFIG.json
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import paramiko


def main() -> None:
    """Bring the pair up and return once it answers."""
    config = json.loads(Path(sys.argv[1]).read_text())
    clients: dict[str, paramiko.SSHClient] = {}
    threads = [threading.Thread(target=_open, args=(config, node, clients)) for node in ("worker", "head")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for node in ("worker", "head"):
        _run(clients[node], "cd floor && docker compose -p spark-pair -f compose.yaml up -d")
    _poll(config["url"])
    for client in clients.values():
        client.close()


def _open(config: dict[str, Any], node: str, clients: dict[str, paramiko.SSHClient]) -> None:
    where = config[node]
    client = paramiko.SSHClient()
    client.load_host_keys(config["known_hosts"])
    client.connect(where["address"], username=where["user"], key_filename=config["key"], look_for_keys=False)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(where["files"], arcname="floor")
    _run(client, "tar x", buffer.getvalue())
    clients[node] = client


def _run(client: paramiko.SSHClient, command: str, data: bytes = b"") -> None:
    stdin, stdout, stderr = client.exec_command(command)
    stdin.write(data)
    stdin.channel.shutdown_write()
    if stdout.channel.recv_exit_status():
        sys.exit(f"{command}: {stderr.read().decode()}")


def _poll(url: str) -> None:
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                answer.read()
                return
        except OSError:
            time.sleep(0.02)


if __name__ == "__main__":
    main()
