"""What is read of a rank that prints nothing: its processes from the engine, its caches from the node's disk."""

from __future__ import annotations

from pathlib import Path

from dspark_deploy.facts.pulse import parse_pulse
from dspark_deploy.remote.local import LocalHost
from tests.remote.stub_docker import StubDocker

TOP = "GET /containers/c1/top?ps_args=-o%20pid,time,comm"
REQUEST = {"container": "c1"}


def test_cpu_time_compilers_and_caches_are_told(local: LocalHost, docker: StubDocker, tmp_path: Path) -> None:
    (tmp_path / "vllm-cache/torch").mkdir(parents=True)
    (tmp_path / "vllm-cache/a.so").write_bytes(b"12345")
    (tmp_path / "vllm-cache/torch/b.so").write_bytes(b"678")
    rows = [["11", "00:01:30", "vllm"], ["12", "1-00:00:02", "VLLM::Worker"], ["13", "00:00:00", "cicc"]]
    docker.answer(TOP, {"Titles": ["PID", "TIME", "COMMAND"], "Processes": rows})
    environment = [
        "VLLM_CACHE_ROOT=/cache/vllm-cache",
        "TRITON_CACHE_DIR=/root/.triton",
        "TILELANG_CACHE_DIR=/cache/tl",
    ]
    mounts = [{"Destination": "/cache", "Source": str(tmp_path)}]
    docker.answer("GET /containers/c1/json", {"Config": {"Env": environment}, "Mounts": mounts})
    pulse = parse_pulse(local.call("pulse", REQUEST, timeout_s=15))
    assert pulse.cpu_s == 90 + 86402
    assert pulse.compilers == ("cicc",)
    assert pulse.caches == {f"{tmp_path}/vllm-cache": (8, 2), f"{tmp_path}/tl": (0, 0)}
    assert pulse.unread == {"TRITON_CACHE_DIR": "it lies inside the container"}


def test_a_container_that_is_gone_has_no_pulse(local: LocalHost, docker: StubDocker) -> None:
    del docker  # it knows no such container
    assert parse_pulse(local.call("pulse", REQUEST, timeout_s=15)).cpu_s is None


def test_what_the_engine_does_not_tell_is_said(local: LocalHost, docker: StubDocker) -> None:
    docker.answer(TOP, {"message": 'ps: exec: "ps": executable file not found'}, status=500)
    docker.answer("GET /containers/c1/json", {"Config": {"Env": []}, "Mounts": []})
    pulse = parse_pulse(local.call("pulse", REQUEST, timeout_s=15))
    assert pulse.cpu_s is None
    assert "ps" in pulse.unread["CPU time and compilers"]
