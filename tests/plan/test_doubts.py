"""Combinations that may work: each is a warning that says what to think about."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dspark_deploy.inventory import Inventory
from dspark_deploy.plan.deployment import Deployment
from tests.plan.deployments import PROFILES, deploy, example_inventory

OPEN = "the API listens on every address of the head (0.0.0.0:8888) without a key"


def closed(**changes: object) -> Inventory:
    inventory = example_inventory()
    api = inventory.api.model_copy(update={"bind": "127.0.0.1"})
    return inventory.model_copy(update={"api": api, **changes})


def warned(profile: str, given: Mapping[str, str]) -> tuple[str, ...]:
    return deploy(profile, given, inventory=closed()).warnings


@pytest.mark.parametrize("profile", PROFILES)
def test_a_published_profile_warns_of_the_open_api_alone(profile: str) -> None:
    assert deploy(profile).warnings == (OPEN,)
    assert warned(profile, {}) == ()


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.168.1.5"])
def test_beyond_loopback_the_routes_that_need_no_key_are_named(bind: str) -> None:
    inventory = example_inventory()
    api = inventory.api.model_copy(update={"bind": bind})
    (said,) = deploy(inventory=inventory.model_copy(update={"api": api}), keyed=True).warnings
    assert "/invocations, /generative_scoring" in said
    assert "/health, /metrics, /version" in said


@pytest.mark.parametrize("bind", ["127.0.0.1", "::1"])
def test_on_loopback_nothing_is_said_of_them(bind: str) -> None:
    inventory = example_inventory()
    api = inventory.api.model_copy(update={"bind": bind})
    assert deploy(inventory=inventory.model_copy(update={"api": api}), keyed=True).warnings == ()


@pytest.mark.parametrize(
    ("profile", "family", "model", "published", "counterpart"),
    [
        ("agent-1m", "stage-c", "deepseek-v4-flash-0731", "anemll", "stage-c-c12"),
        ("stage-c-c12", "anemll", "deepseek-v4-flash-dspark-directory", "stage-c", "agent-1m"),
    ],
)
def test_an_unpublished_pairing_names_its_published_counterpart(
    profile: str, family: str, model: str, published: str, counterpart: str
) -> None:
    assert warned(profile, {"family": family})[0] == (
        f"{model} was never published on {family}, only on {published}; published there is profile {counterpart}"
    )


def test_a_value_whose_flag_the_family_does_not_get_warns() -> None:
    assert warned("stage-c-c12", {"long_prefill_token_threshold": "1024"}) == (
        "--long-prefill-token-threshold is left out on stage-c: no Stage-C command was ever published with it",
    )


def test_the_preview_was_published_on_both_families() -> None:
    assert warned("diagnostic-fp8", {"family": "anemll"}) == ()


@pytest.mark.parametrize(
    ("given", "warnings"),
    [
        (
            {"capture_size": "36"},
            ["capture_size 36 is off the runtime's grid: it is cut to 32", "capture_size 32 is below 36"],
        ),
        ({"capture_size": "24"}, ["capture_size 24 is below 36 verify rows: a full batch decodes outside of a graph"]),
        ({"capture_size": "50"}, ["capture_size 50 is off the runtime's grid: it is cut to 48"]),
        ({"capture_size": "48"}, []),
        ({"gpu_memory_utilization": "0.88"}, ["gpu_memory_utilization 0.88 is above 0.87, the highest ever published"]),
        ({"gpu_memory_utilization": "0.87"}, []),
        (
            {"image": "registry.local/mine:1"},
            ["image registry.local/mine:1 is of no known family", "image registry.local/mine:1 has no digest"],
        ),
        ({"image": f"ghcr.io/anemll/dspark-vllm-gx10:0.1.2@sha256:{'a' * 64}"}, []),
        (
            {"environment.VLLM_USE_B12X_MEO": "1"},
            ["--set: anemll is not known to read VLLM_USE_B12X_MEO; did you mean VLLM_USE_B12X_MOE?"],
        ),
        ({"environment.VLLM_TRITON_MLA_SPARSE": "1"}, ["--set: anemll is not known to read VLLM_TRITON_MLA_SPARSE"]),
        ({"environment.NCCL_IB_HCAS": "x"}, ["--set: NCCL_IB_HCAS is passed on as it is; did you mean NCCL_IB_HCA?"]),
        ({"environment.MY_OWN": "x"}, []),
        (
            {"extra_flags.--max-logprob": "3", "extra_flags.--enforce-eager": "true"},
            ["--set: vLLM 0.32.0 has no --max-logprob; did you mean --max-logprobs?"],
        ),
    ],
)
def test_a_doubtful_value_warns(given: dict[str, str], warnings: list[str]) -> None:
    found = warned("agent-1m", given)
    assert len(found) == len(warnings)
    assert all(text.startswith(start) for text, start in zip(found, warnings, strict=True))


def test_link_local_addresses_and_dockers_restarts_warn() -> None:
    inventory = closed(restart="unless-stopped")
    text = inventory.model_dump_json().replace("192.168.177.", "169.254.17.")
    deployment: Deployment = deploy(inventory=Inventory.model_validate_json(text))
    assert deployment.warnings == (
        "head: the fabric address 169.254.17.11 is link-local, and may be another after a restart",
        "worker: the fabric address 169.254.17.12 is link-local, and may be another after a restart",
        (
            "restart: unless-stopped lets docker revive one rank alone, which leaves a split pair: the other holds a "
            "stale rank (F61)"
        ),
    )


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        pytest.param({"image": "ghcr.io/anemll/dspark-vllm-gx10:0.1.2"}, "nobody notices", id="F11"),
        pytest.param({"environment.VLLM_USE_B12X_MEO": "1"}, "is not known to read", id="F05"),
        pytest.param({"environment.VLLM_USE_BREAKABLE_CUDAGRAPH": "1"}, "a quarter slower", id="F89"),
        pytest.param({"long_prefill_token_threshold": "0"}, "starves every stream", id="F93"),
        pytest.param({"environment.VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "300"}, "the engine ends", id="F98"),
        pytest.param({"capture_size": "24"}, "outside of a graph", id="F101"),
    ],
)
def test_what_is_known_to_disappoint_warns_by_its_row(given: dict[str, str], warning: str) -> None:
    (found,) = warned("agent-1m", given)
    assert warning in found
