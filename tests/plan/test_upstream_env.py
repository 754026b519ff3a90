"""Every line of an env file of upstream's is accounted for: taken over, already so, derived, or left out and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.plan.upstream_env import TakenOver, take_over
from dspark_deploy.strict import read_assignments, read_text
from tests.plan.deployments import CATALOGUE

DATA = Path(__file__).parents[1] / "data" / "upstream"
PIN = "9e165c30e2704aec5d9d593cce3eebd58bbef1cb"


def taken(text: str, profile: str | None = None) -> TakenOver:
    return take_over(read_assignments(text, {"HOME": "~"}), CATALOGUE, profile=profile, own="spark-pair-env")


def meaningful(text: str) -> list[int]:
    """The numbers of the lines that are neither empty nor a comment nor `set -a`."""
    lines = text.removeprefix("\ufeff").replace("\r", "").splitlines()
    return [n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith(("#", "set "))]


@pytest.mark.parametrize("path", sorted(DATA.glob("*.env")), ids=lambda path: path.stem)
def test_every_line_is_accounted_for_and_what_is_left_out_has_a_reason(path: Path) -> None:
    text = read_text(path, absent="")
    found = taken(text).keys
    assert [each.line for each in found] == meaningful(text)
    assert all(each.why for each in found if each.fate in {"derived", "left-out"})
    assert all(each.to for each in found if each.fate in {"taken", "same"})


def test_there_are_five_damaged_files() -> None:
    assert len(list(DATA.glob("damaged-*.env"))) == 5


def test_a_whole_file_becomes_an_inventory_and_what_differs_from_the_nearest_profile() -> None:
    found = taken(read_text(DATA / "example.env", absent=""))
    assert found.inventory == {
        "worker.host": "ubuntu@10.77.0.2",
        "head.fabric.address": "192.168.177.11",
        "worker.fabric.address": "192.168.177.12",
        "head.fabric.interface": "enp1s0f0np0",
        "worker.fabric.interface": "enp1s0f0np0",
        "head.fabric.hca": "=rocep1s0f0,roceP2p1s0f0",
        "worker.fabric.hca": "=rocep1s0f0,roceP2p1s0f0",
        "head.hf_home": "~/.cache/huggingface",
        "worker.hf_home": "~/.cache/huggingface",
        "api.bind": "127.0.0.1",
        "api.port": 8888,
        "master_port": 25000,
        "restart": "unless-stopped",
    }
    assert found.workload.profile == "coding-1m"
    assert found.workload.values == {
        "draft_sample_method": "greedy",
        "environment.NCCL_DEBUG": "INFO",
        "environment.NCCL_DMABUF_ENABLE": "0",
        "environment.NCCL_IB_MERGE_NICS": "0",
        "environment.NCCL_IB_SUBNET_AWARE_ROUTING": "1",
        "environment.VLLM_ENABLE_RESPONSES_API_STORE": "1",
        "environment.VLLM_USE_V2_MODEL_RUNNER": "1",
        "environment.VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "5",
    }


@pytest.mark.parametrize("path", sorted(DATA.glob("*.env")), ids=lambda path: path.stem)
def test_no_key_is_repeated_anywhere(path: Path) -> None:
    assert "sk-" not in repr(taken(read_text(path, absent="")))
    assert "hf_$literal" not in repr(taken(read_text(path, absent="")))


def test_an_api_that_asked_for_keys_is_not_opened() -> None:
    found = taken("VLLM_HOST=0.0.0.0\nDSPARK_API_KEYS=sk-a sk-b\n")
    assert found.inventory == {"api.bind": "127.0.0.1"}
    assert "DSPARK_API_KEYS" in found.warnings[0]
    assert taken("VLLM_HOST=0.0.0.0\nVLLM_API_KEY=\n").inventory == {"api.bind": "0.0.0.0"}


def test_each_nodes_keys_are_its_own_and_the_workers_file_is_known_by_its_rank() -> None:
    assert taken("NCCL_SOCKET_IFNAME=a0\nWORKER_NCCL_SOCKET_IFNAME=b0\n").inventory == {
        "head.fabric.interface": "a0",
        "worker.fabric.interface": "b0",
    }
    assert taken(
        "NODE_RANK=1\nHEADLESS=1\nNCCL_SOCKET_IFNAME=b0\nMASTER_ADDR=10.0.0.1\nVLLM_HOST_IP=10.0.0.2\n"
    ).inventory == {
        "worker.fabric.interface": "b0",
        "head.fabric.address": "10.0.0.1",
        "worker.fabric.address": "10.0.0.2",
    }


def test_a_home_is_each_nodes_own() -> None:
    assert taken("HF_CACHE=${HOME}/hf\n").inventory == {"head.hf_home": "~/hf", "worker.hf_home": "~/hf"}
    assert taken("HF_CACHE=/data/a\nWORKER_HF_CACHE=~/b\n").inventory == {
        "head.hf_home": "/data/a",
        "worker.hf_home": "~/b",
    }


def test_a_gid_index_is_a_pin_only_where_upstream_takes_it_for_one() -> None:
    assert taken("NCCL_IB_GID_INDEX=3\n").inventory == {}
    assert taken("NCCL_IB_GID_AUTO=0\nNCCL_IB_GID_INDEX=3\nWORKER_NCCL_IB_GID_INDEX=5\n").inventory == {
        "head.fabric.gid_index": 3,
        "worker.fabric.gid_index": 5,
    }


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("WORKER_HOST=worker-host-or-roce-ip", "WORKER_HOST", "placeholder"),
        ("MASTER_ADDR=169.254.88.1", "MASTER_ADDR", "link-local"),
        ("MASTER_ADDR=10.0.0.1\nVLLM_HOST_IP=10.0.0.9", "VLLM_HOST_IP", "MASTER_ADDR says 10.0.0.1"),
        ("VLLM_HOST_IP=10.0.0.1\nWORKER_VLLM_HOST_IP=10.0.0.1", "WORKER_VLLM_HOST_IP", "the head's address too"),
        ("VLLM_HOST_IP=10.0.0.1\nWORKER_VLLM_HOST_IP=10.0.1.2", "WORKER_VLLM_HOST_IP", "10.0.0.0/24"),
        ("VLLM_PORT=25000", "VLLM_PORT", "twice"),
        ("NCCL_IB_HCAS=rocep1s0f0", "NCCL_IB_HCAS", "NCCL_IB_HCA?"),
        ("MAX_MODEL_LENGTH=350000", "MAX_MODEL_LENGTH", "MAX_MODEL_LEN?"),
        ("GPU_MEMORY_UTILIZATION=0,80", "GPU_MEMORY_UTILIZATION", "above 0, up to 1"),
        ("MAX_NUM_SEQS=16", "MAX_NUM_SEQS", "96 verify rows"),
        ("MTP_NUM_TOKENS=3", "MTP_NUM_TOKENS", "blocks of 5"),
        ("VLLM_DSPARK_LOCAL_ARGMAX=1", "VLLM_DSPARK_LOCAL_ARGMAX", "stage-c"),
        ("TP_SOCKET_IFNAME=a1\nNCCL_SOCKET_IFNAME=a0", "TP_SOCKET_IFNAME", "differs from NCCL_SOCKET_IFNAME"),
        ("HF_TOKEN=hf_x", "HF_TOKEN", "nothing is downloaded"),
        ("VLLM_USE_B12X_MOE=1\nVLLM_USE_B12X_MOE=2", "VLLM_USE_B12X_MOE", "line 2 sets it again"),
    ],
)
def test_what_is_left_out_says_why(text: str, name: str, why: str) -> None:
    told = next(each for each in taken(text).keys if each.name == name)
    assert told.fate in {"left-out", "derived"}
    assert why in told.why


def test_the_utilization_is_the_one_that_upstreams_start_takes() -> None:
    both = "GPU_MEMORY_UTILIZATION=0.7\nGPU_MEMORY_UTILIZATION_TEXT=0.82\nGPU_MEMORY_UTILIZATION_VISION=0.78\n"
    assert taken(both).workload.values == {"gpu_memory_utilization": 0.82}
    assert taken(f"{both}ENABLE_VL_SIDECAR=1\n").workload.values == {"gpu_memory_utilization": 0.78}
    assert taken("GPU_MEMORY_UTILIZATION=0.7\n").workload.values == {"gpu_memory_utilization": 0.7}


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("", "agent-1m"),
        ("MAX_NUM_SEQS=4\nMAX_NUM_BATCHED_TOKENS=16384\n", "coding-1m"),
        ("MAX_NUM_SEQS=4\n", "agent-1m"),  # what the file does not say is what upstream's compose file has
        ("MAX_MODEL_LEN=500000\nMAX_NUM_SEQS=4\n", "balanced-500k"),
        ("DSPARK_VLLM_IMAGE=vllm-dspark-runtime:dspark-nvfp4-stage-c\nMTP_NUM_TOKENS=3\n", "stage-c-c12"),
        (
            "DSPARK_VLLM_IMAGE=vllm-dspark-runtime:dspark-nvfp4-stage-c\nMAX_MODEL_LEN=200000\nMAX_NUM_SEQS=16\n",
            "concurrent-200k",
        ),
    ],
)
def test_the_nearest_published_profile_is_the_base(text: str, profile: str) -> None:
    assert taken(text).workload.profile == profile


def test_a_named_profile_is_the_base_and_an_image_of_another_family_is_left_out() -> None:
    found = taken("DSPARK_VLLM_IMAGE=vllm-dspark-runtime:clean\nMAX_NUM_SEQS=6\n", profile="deep-1m")
    assert (found.workload.profile, found.workload.values) == ("deep-1m", {"max_num_seqs": 6})
    assert "stage-c" in found.keys[0].why


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"ABLITERATED=0\nDSPARK_REVISION={PIN}\n", "same"),
        ("ABLITERATED=0\n", "same"),  # upstream's own pin
        ("DSPARK_MODEL=deepseek-ai/DeepSeek-V4-Flash-DSpark\n", "taken"),
        ("ABLITERATED=1\n", "left-out"),
        ("DSPARK_MODEL_OFFICIAL=deepseek-ai/DeepSeek-V4-Flash-0731\nDSPARK_REVISION=main\n", "left-out"),
    ],
)
def test_the_checkpoint_is_the_one_that_upstreams_start_resolves(text: str, told: str) -> None:
    assert {each.fate for each in taken(text).keys} == {told}


def test_another_revision_of_a_known_checkpoint_is_a_model_of_its_own() -> None:
    other = "0" * 39 + "a"
    model = taken(f"DSPARK_REVISION={other}\n").workload.model
    assert model is not None
    assert (model.id, model.revision, model.ships_encoder) == ("deepseek-ai/DeepSeek-V4-Flash-0731", other, True)
    unpinned = taken("DSPARK_REVISION=\n").workload.model
    assert unpinned is not None
    assert unpinned.revision is None


def test_a_checkpoint_that_nothing_describes_is_a_warning() -> None:
    (warning,) = taken("ABLITERATED=1\n").warnings
    assert "drowzeys/" in warning
    assert "profiles/models" in warning


def test_a_plain_directory_is_known_by_its_place_in_the_container() -> None:
    text = "DSPARK_VLLM_IMAGE=vllm-dspark-runtime:dspark-nvfp4-stage-c\nMAX_MODEL_LEN=200000\nMAX_NUM_SEQS=16\n"
    found = taken(f"{text}DSPARK_MODEL=/cache/huggingface/fraserprice/DeepSeek-V4-Flash-DSpark\n")
    assert found.workload.values["model"] == "deepseek-v4-flash-dspark-directory"
