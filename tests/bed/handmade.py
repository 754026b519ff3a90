"""A pair started by hand: compose files written here, not by the tool, so that the bed is judged without it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from dspark_deploy.rehearsal.standin.snapshots import MODEL_0731, REVISION_0731

from . import images
from .bed import Bed
from .host import wait_until
from .node import Node

FOLDER = "handmade"
NAME = "handmade"
EVERYWHERE = "0.0.0.0"
CONTAINER = f"{NAME}-vllm-1"

_ASK = """
import sys, urllib.error, urllib.request
url, timeout, body = sys.argv[1:]
request = urllib.request.Request(url, body.encode() or None, {"Content-Type": "application/json"})
try:
    answer = urllib.request.urlopen(request, timeout=float(timeout))
except urllib.error.HTTPError as error:
    answer = error
except OSError:
    answer = None
print(answer.status if answer else 0)
print(answer.read().decode() if answer else "")
"""

EXECUTABLES = {images.ANEMLL: "/usr/local/bin/vllm", images.STAGE_C: "/opt/env/bin/vllm"}


def argv(bed: Bed, node: Node, image: str = images.ANEMLL, extra: Sequence[str] = ()) -> list[str]:
    """A short `vllm serve` line for a rank."""
    rank = 0 if node is bed.head else 1
    words = [EXECUTABLES[image], "serve", MODEL_0731, "--revision", REVISION_0731, "--served-model-name", "dsv4"]
    words += ["--host", EVERYWHERE, "--port", "8888", "--tensor-parallel-size", "2", "--max-model-len", "1048576"]
    words += ["--max-num-seqs", "4", "--max-num-batched-tokens", "8192", "--gpu-memory-utilization", "0.85"]
    words += ["--speculative-config", json.dumps({"method": "dspark", "num_speculative_tokens": 5})]
    words += ["--tokenizer-mode", "deepseek_v4", "--kv-cache-dtype", "nvfp4_ds_mla", "--block-size", "256"]
    words += ["--reasoning-parser", "deepseek_v4", "--nnodes", "2", "--node-rank", str(rank)]
    words += ["--master-addr", str(bed.head.fabric_address), "--master-port", "25000"]
    return [*words, *(["--headless"] if rank else []), *extra]


def environment(node: Node) -> dict[str, str]:
    """What a rank needs from its environment."""
    interface = node.fabric_interface
    return {
        "VLLM_HOST_IP": str(node.fabric_address),
        "NCCL_SOCKET_IFNAME": interface,
        "GLOO_SOCKET_IFNAME": interface,
        "HF_HOME": "/cache/huggingface",
        "HF_HUB_OFFLINE": "1",
    }


def write(node: Node, image: str, command: Sequence[str], variables: Mapping[str, str]) -> None:
    """Put the compose file of a rank into its user's home."""
    gpus = {"driver": "nvidia", "count": -1, "capabilities": ["gpu"]}
    service = {
        "image": image,
        "pull_policy": "never",
        "entrypoint": [],
        "command": [word.replace("$", "$$") for word in command],
        "environment": dict(variables),
        "network_mode": "host",
        "ipc": "host",
        "ulimits": {"memlock": -1},
        "restart": "no",
        "volumes": [{"type": "bind", "source": node.hf_home, "target": "/cache/huggingface"}],
        "devices": ["/dev/infiniband:/dev/infiniband"],
        "deploy": {"resources": {"reservations": {"devices": [gpus]}}},
    }
    document = json.dumps({"name": NAME, "services": {"vllm": service}})
    node.write(f"{node.home}/{FOLDER}/compose.yaml", document, owner=node.identity.uid)


def up(node: Node) -> None:
    """`docker compose up -d` as the node's user."""
    node.as_user(["sh", "-c", f"cd {FOLDER} && docker compose up -d"]).check()


def start(
    bed: Bed,
    image: str = images.ANEMLL,
    *,
    extra: Sequence[str] = (),
    variables: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Start the worker, then the head. `variables`: role -> what to change in its environment."""
    for node in (bed.worker, bed.head):
        changed = {**environment(node), **(variables or {}).get(node.identity.role, {})}
        write(node, image, argv(bed, node, image, extra), changed)
        up(node)


def wait_for_log(node: Node, text: str, limit_s: float = 20) -> None:
    """Wait until a rank has printed this."""
    wait_until(lambda: text in node.logs(CONTAINER), limit_s)


def wait_for_exit(node: Node, limit_s: float = 20) -> int:
    """Wait until a rank's container has ended; its exit code."""
    wait_until(lambda: node.api.inspect(CONTAINER)["State"]["Status"] == "exited", limit_s)
    return int(node.api.inspect(CONTAINER)["State"]["ExitCode"])


def ask(bed: Bed, path: str, body: object = None, *, timeout: float = 10) -> tuple[int, str]:
    """One request to the head's API over the LAN: status (0 when none came in time) and body."""
    url = f"http://{bed.head.lan_address}:8888{path}"
    argv = [sys.executable, "-c", _ASK, url, str(timeout), "" if body is None else json.dumps(body)]
    status, _, text = bed.run(argv, timeout=timeout + 10).stdout.partition("\n")
    return int(status), text


def say(bed: Bed, text: str = "Say something.", *, timeout: float = 10, **more: object) -> tuple[int, str]:
    """One chat of at most 64 tokens without thinking."""
    message = {"role": "user", "content": text}
    body = {"model": "dsv4", "messages": [message], "max_tokens": 64, **more}
    return ask(bed, "/v1/chat/completions", body, timeout=timeout)
