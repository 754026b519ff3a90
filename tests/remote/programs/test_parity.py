"""What a node tells of the rank that runs on it, by its engine and by a program in the rank's container."""

from __future__ import annotations

import base64
import json
import struct
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import StepFailed
from dspark_deploy.facts.parity import HIDDEN_FLAG, HIDDEN_VARIABLE, RankSeen, ReleaseFile, Value, parse_rank
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.programs._engine import quoted
from dspark_deploy.remote.programs._exec import demultiplex
from tests.remote.stub_docker import StubDocker

FILTERS = json.dumps({"label": ["dspark.pair=spark-pair"], "status": ["running"]})
LIST = f"GET /containers/json?filters={quoted(FILTERS)}"
LOGS = "GET /containers/c1/logs?stdout=1&stderr=1&since=1788256800"
REQUEST: dict[str, Any] = {
    "pair": "spark-pair",
    "families": {
        "anemll": {"python": "/bin/python", "package": "/packages/vllm", "cache": "/cache", "unread": ["/opt/key"]}
    },
    "program": "print()",
    "limit_s": 5,
    "salt": "salt",
    "secret_variable": HIDDEN_VARIABLE,
    "secret_flag": HIDDEN_FLAG,
}
ARGV = ["serve", "m", "--api-key", "sk-one", "sk-two", "--port", "8888", "--hf-token=hf_x"]


def container(home: Path) -> dict[str, Any]:
    """As the engine inspects it."""
    release = home / ".local/share/dspark/spark-pair/releases/0123456789ab"
    return {
        "Id": "c1",
        "Image": "sha256:1",
        "State": {"StartedAt": "2026-09-01T10:00:00.123456789Z"},
        "Config": {
            "Image": "an:image",
            "Labels": {"dspark.family": "anemll", "dspark.release": "0123456789ab"},
            "Entrypoint": ["/bin/bash", "/opt/serve.sh"],
            "Cmd": ARGV,
            "Env": ["A=1", "HF_TOKEN=hf_secret", "EMPTY="],
        },
        "Mounts": [
            {"Type": "bind", "Source": str(release / "serve.sh"), "Destination": "/opt/serve.sh", "RW": False},
            {"Type": "bind", "Source": str(release / "patches"), "Destination": "/opt/patches", "RW": False},
            {"Type": "bind", "Source": "/key", "Destination": "/opt/key", "RW": False},
            {"Type": "bind", "Source": "/hf", "Destination": "/cache", "RW": True},
            {"Type": "bind", "Source": "/hub", "Destination": "/cache/hub", "RW": True},
        ],
    }


def framed(out: str, err: str = "") -> str:
    """A stream as the engine sends it, for the stub."""
    frames = ((1, out.encode()), (2, err.encode()))
    data = b"".join(struct.pack(">BxxxL", stream, len(text)) + text for stream, text in frames if text)
    return f"base64:{base64.b64encode(data).decode()}"


@pytest.fixture(name="engine")
def _engine(docker: StubDocker, home: Path) -> StubDocker:
    docker.answer(LIST, [{"Id": "c1"}])
    docker.answer("GET /containers/c1/json", container(home))
    docker.answer("GET /images/sha256:1/json", {"Id": "sha256:1", "RootFS": {"Layers": ["sha256:a"]}, "Config": {}})
    docker.answer(LOGS, framed("dspark prepare: encoder: corrected x\nINFO serving\n", "dspark serve: a word\n"))
    docker.answer("POST /containers/c1/exec", {"Id": "e1"}, status=201)
    docker.answer("POST /exec/e1/start", framed('{"package": {"a.py": "11"}, "mounted": {"/opt/serve.sh": null}}'))
    docker.answer("GET /exec/e1/json", {"ExitCode": 0})
    return docker


def ask(local: LocalHost) -> RankSeen:
    rank = parse_rank("head", local.call("parity", REQUEST, timeout_s=15))
    assert rank is not None
    return rank


@pytest.mark.usefixtures("engine")
def test_everything_that_a_rank_was_started_with_is_told(local: LocalHost) -> None:
    rank = ask(local)
    assert (rank.container, rank.release, rank.family) == ("c1", "0123456789ab", "anemll")
    assert rank.image is not None
    assert (rank.image.reference, rank.image.layers) == ("an:image", ("sha256:a",))
    assert [str(word) for word in rank.argv[:6]] == [
        "/bin/bash",
        "/opt/serve.sh",
        "serve",
        "m",
        "--api-key",
        "[redacted]",
    ]
    assert rank.environment["A"] == Value("1")
    assert rank.mounts["/opt/serve.sh"] == "read-only"
    assert rank.mounts["/cache/hub"] == "read-write"
    assert (rank.package, rank.mounted) == ({"a.py": "11"}, {"/opt/serve.sh": None})
    assert rank.printed == ("dspark prepare: encoder: corrected x", "dspark serve: a word")
    assert rank.untold == {}


@pytest.mark.usefixtures("engine")
def test_no_secret_leaves_the_node(local: LocalHost) -> None:
    told = json.dumps(local.call("parity", REQUEST, timeout_s=15))
    assert [secret for secret in ("sk-one", "sk-two", "hf_x", "hf_secret") if secret in told] == []
    rank = ask(local)
    assert rank.environment["HF_TOKEN"] == Value("", sha256(b"salthf_secret").hexdigest())
    assert [str(word) for word in rank.argv[-5:]] == ["[redacted]", "--port", "8888", "--hf-token", "[redacted]"]


def test_the_container_is_asked_for_its_mounts_but_for_secrets_and_the_models_cache(
    local: LocalHost, engine: StubDocker
) -> None:
    ask(local)
    (asked,) = (given for what, given, _ in engine.asked() if what == "POST /containers/c1/exec")
    assert asked["Cmd"][:-1] == ["/bin/python", "-I", "-S", "-c", "print()"]
    assert json.loads(asked["Cmd"][-1]) == {
        "package": "/packages/vllm",
        "mounts": ["/opt/serve.sh", "/opt/patches"],
        "limit_s": 5,
    }


@pytest.mark.usefixtures("engine")
def test_files_of_the_release_are_held_against_their_manifest(local: LocalHost, home: Path) -> None:
    release = home / ".local/share/dspark/spark-pair/releases/0123456789ab"
    release.mkdir(parents=True)
    hashes = {name: sha256(name.encode()).hexdigest() for name in (".env", "serve.sh", "gone", "patches/1/a.py")}
    (release / "manifest.json").write_text(json.dumps({"files": {name: {"sha256": h} for name, h in hashes.items()}}))
    (release / ".env").write_text(".env")
    (release / "serve.sh").write_text("something else")
    assert ask(local).release_files == (
        ReleaseFile(".env", hashes[".env"], "whole"),
        ReleaseFile("serve.sh", hashes["serve.sh"], "changed", "/opt/serve.sh"),
        ReleaseFile("gone", hashes["gone"], "missing"),
        ReleaseFile("patches/1/a.py", hashes["patches/1/a.py"], "missing", "/opt/patches/1/a.py"),
    )


def test_a_container_whose_python_dies_tells_why(local: LocalHost, engine: StubDocker) -> None:
    engine.answer("POST /exec/e1/start", framed("", "line\nMemoryError\n"))
    engine.answer("GET /exec/e1/json", {"ExitCode": 1})
    rank = ask(local)
    assert rank.package is None
    assert rank.untold["package"] == "/bin/python in the container ended with 1: MemoryError"
    assert rank.mounts


def test_a_container_in_which_nothing_can_be_run_tells_why(local: LocalHost, engine: StubDocker) -> None:
    engine.answer("POST /containers/c1/exec", {"message": "Container c1 is paused"}, status=409)
    assert "Container c1 is paused" in ask(local).untold["mounted"]


def test_a_node_without_a_running_rank_says_so(local: LocalHost, docker: StubDocker) -> None:
    docker.answer(LIST, [])
    assert parse_rank("head", local.call("parity", REQUEST, timeout_s=15)) is None


def test_a_daemon_that_is_down_is_an_error(local: LocalHost, docker: StubDocker) -> None:
    docker.set(error="Cannot connect to the Docker daemon at unix:///var/run/docker.sock.")
    with pytest.raises(StepFailed, match="can't be asked"):
        local.call("parity", REQUEST, timeout_s=15)


def test_frames_are_put_together_however_they_are_cut_up() -> None:
    whole = b"".join(
        struct.pack(">BxxxL", stream, len(text)) + text for stream, text in ((1, b"ab"), (2, b"x"), (1, b"c"))
    )
    assert demultiplex(whole[at : at + 1] for at in range(len(whole))) == (b"abc", b"x")
    assert demultiplex([whole]) == (b"abc", b"x")


def test_no_more_is_read_than_asked_for() -> None:
    frame = struct.pack(">BxxxL", 1, 10) + b"0123456789"
    parts = iter([frame] * 100)
    out, _ = demultiplex(parts, 25)
    assert len(out) == 30
    assert len(list(parts)) == 97
