"""What a node remembers of the pair, and whether a container can use the GPU."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.facts.recall import GpuInside, Recalled, parse_recalled
from dspark_deploy.remote.local import LocalHost
from tests.remote.stub_docker import StubDocker

LISTED = "GPU 0: NVIDIA GB10 (UUID: GPU-0a0a0a0a-0000-0000-0000-000000000000)\n"


def frames(out: str = "", err: str = "") -> str:
    """What a command printed, as the engine sends it."""
    parts = [struct.pack(">BxxxL", stream, len(text)) + text.encode() for stream, text in ((1, out), (2, err)) if text]
    return "base64:" + base64.b64encode(b"".join(parts)).decode()


def recall(host: LocalHost, container: str | None = None) -> Recalled:
    return parse_recalled(host.call("recall", {"pair": "spark-pair", "container": container}, timeout_s=15))


def runs(docker: StubDocker, printed: str, code: int) -> None:
    docker.answer("POST /containers/c1/exec", {"Id": "e1"}, 201)
    docker.answer("POST /exec/e1/start", printed)
    docker.answer("GET /exec/e1/json", {"ExitCode": code})


@pytest.mark.parametrize(
    ("printed", "code", "expected"),
    [
        (frames(LISTED), 0, GpuInside(usable=True, detail="GPU 0: NVIDIA GB10")),
        (
            frames(err="Failed to initialize NVML: Unknown Error\n"),
            255,
            GpuInside(usable=False, detail="Failed to initialize NVML: Unknown Error"),
        ),
        (frames(err="exec: nvidia-smi: not found"), 127, GpuInside(None, "there is no nvidia-smi in its image")),
        (frames(), 124, GpuInside(None, "nvidia-smi ended with exit code 124")),
    ],
    ids=["usable", "lost", "no-such-command", "hangs"],
)
def test_the_gpu_is_looked_for_in_the_container(
    local: LocalHost, docker: StubDocker, home: Path, printed: str, code: int, expected: GpuInside
) -> None:
    del home
    runs(docker, printed, code)
    assert recall(local, "c1").gpu == expected


@pytest.mark.usefixtures("home")
def test_an_engine_that_does_not_answer_leaves_it_untold(local: LocalHost, docker: StubDocker) -> None:
    docker.set(error="permission denied while trying to connect to the docker API")
    gpu = recall(local, "c1").gpu
    assert gpu is not None
    assert gpu.usable is None
    assert "permission denied" in gpu.detail


@pytest.mark.usefixtures("docker")
def test_what_was_noted_and_hashed_is_told_and_broken_lines_are_passed_over(local: LocalHost, home: Path) -> None:
    folder = home / ".local/share/dspark/spark-pair"
    folder.mkdir(parents=True)
    (folder / "good.json").write_text('{"at": "2026-09-01T10:00:00+00:00", "values": {"kernel": "6.14"}}')
    lines: list[dict[str, Any]] = [
        {"path": "/hub/blobs/1", "size": 3, "mtime_ns": 1, "ctime_ns": 1, "digests": {}},
        {"at": "2026-08-01T00:00:00Z", "folder": "/hub/x", "verdict": "corrupt", "fingerprint": "f"},
        {"at": "2026-08-02T00:00:00Z", "folder": "/hub/x", "verdict": "complete", "fingerprint": "f"},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "cache.jsonl").write_text(text + '{"verdict": "complete", "folder": "/hub/y"}\n{"verdict": "com')
    told = recall(local)
    assert told.noted is not None
    assert told.noted.values == {"kernel": "6.14"}
    assert [(each.at, each.verdict) for each in told.hashed] == [("2026-08-02T00:00:00Z", "complete")]
    assert told.gpu is None


@pytest.mark.usefixtures("docker", "home")
def test_a_node_that_knows_nothing_says_so(local: LocalHost) -> None:
    assert recall(local) == Recalled(None, (), None)
