"""A deployment to render, and the real compose to read what came out of it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import strategies as st

from dspark_deploy.family import Family
from dspark_deploy.model import Model
from dspark_deploy.plan.deployment import Deployment, Endpoint, Rank
from dspark_deploy.profile import Profile
from dspark_deploy.render.release import File

from ..bed.packages import BedUnavailable, compose_binary

AWKWARD = "$\"'\\#`!%&|;<>(){}[]=:,~ \t\n\r😀é"
REVISION = "9e165c30e2704aec5d9d593cce3eebd58bbef1cb"


@pytest.fixture
def family() -> Family:
    """A runtime image's layout with every switch that rendering looks at."""
    return Family(
        name="anemll",
        title="Anemll",
        image="ghcr.io/anemll/dspark-vllm-gx10:0.1.1",
        repositories=("ghcr.io/anemll/dspark-vllm-gx10",),
        executable="/usr/local/bin/vllm",
        python="/usr/bin/python3",
        packages="/usr/local/lib/python3.12/dist-packages",
        path_prefix=("/usr/local/cuda/bin", "/usr/local/bin"),
        library_path_prefix=("/usr/local/cuda/lib64",),
        exports={"CUDA_HOME": "/usr/local/cuda"},
        interface_variables=("NCCL_SOCKET_IFNAME",),
        environment={"NCCL_NET": "IB"},
        registered=("VLLM_HOST_IP",),
        rendezvous_marker="distributed_init_method=tcp://",
        prepare=("encoder", "effort", "kv_dispatch"),
    )


@pytest.fixture
def model() -> Model:
    return Model(
        name="deepseek-v4-flash-0731",
        id="deepseek-ai/DeepSeek-V4-Flash-0731",
        revision=REVISION,
        served_name="deepseek-v4-flash-0731",
        families=("anemll",),
        ships_encoder=True,
    )


@pytest.fixture
def deployment(family: Family, model: Model) -> Deployment:
    """agent-1m on a pair whose nodes differ in everything that may differ."""
    profile = Profile(
        name="agent-1m",
        title="Agents",
        family=family.name,
        model=model.name,
        max_model_len=1048576,
        max_num_seqs=6,
        max_num_batched_tokens=8192,
        gpu_memory_utilization=0.85,
    )
    return Deployment(
        pair="spark-pair",
        profile=profile,
        model=model,
        family=family,
        image=family.image,
        ranks=(
            Rank(
                number=0,
                node="head",
                interface="enp1s0f0np0",
                address=IPv4Address("192.168.177.11"),
                hca="=rocep1s0f0",
                gid_index=None,
                hf_home=PurePosixPath("/home/nvidia/.cache/huggingface"),
            ),
            Rank(
                number=1,
                node="worker",
                interface="enp1s0f1np1",
                address=IPv4Address("192.168.177.12"),
                hca="=rocep1s0f1",
                gid_index=5,
                hf_home=PurePosixPath("/data/models/hf"),
                hub_cache=PurePosixPath("/data/$hub cache"),
            ),
        ),
        api=Endpoint("192.168.1.10", 8888),
        master_port=25000,
        offline=True,
        restart="no",
        sources={},
    )


def arguments(*, min_size: int = 0) -> st.SearchStrategy[str]:
    """Text that a process can hold, rich in what quoting trips over."""
    carriable = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    plain = st.text(carriable, min_size=min_size, max_size=20)
    awkward = st.text(st.sampled_from(AWKWARD), min_size=min_size, max_size=12)
    known = st.sampled_from(["$$", "${HOME}", "a\\", "\\n", "#", " ", "\n", "\ufeff", "\u2028", "no", "~", "null", "-"])
    return awkward | plain | known


@dataclass(frozen=True)
class Compose:
    """A real docker compose, which parses files without any engine."""

    binary: Path

    def config(self, folder: Path, files: Mapping[str, File]) -> dict[str, Any]:
        """What compose makes of the files: its JSON. Its own doubled $ are not undone; `as_text` does."""
        for name, file in files.items():
            (folder / name).write_bytes(file.content.encode())
        command = [str(self.binary), "-f", str(folder / "compose.yaml"), "config", "--format", "json"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        done = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""  # it warns of a variable that is not set, for one
        parsed: dict[str, Any] = json.loads(done.stdout)
        return parsed


@pytest.fixture(scope="session")
def compose() -> Compose:
    """The version that Debian ships, 2.26: it drops in silence what it does not know."""
    return _compose(compose_binary)


@pytest.fixture(scope="session")
def newer_compose() -> Compose:
    return _compose(lambda: compose_binary(newer=True))


def _compose(find: Callable[[], Path]) -> Compose:
    try:
        return Compose(find())
    except BedUnavailable as reason:
        pytest.skip(f"no docker compose to ask: {reason}")
