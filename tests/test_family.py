"""The families' files: whole, and consistent with themselves and each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.errors import ConfigError
from dspark_deploy.family import Family, load_family

BUNDLED = SearchPath((data_folder("profiles"),))
FAMILIES = {name: load_family(name, BUNDLED) for name in BUNDLED.files("family")}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def test_both_families_are_there() -> None:
    assert set(FAMILIES) == {"anemll", "stage-c"}


@every_family
def test_a_family_sets_no_switch_that_it_does_not_register(family: Family) -> None:
    switches = {name for name in family.environment if name.startswith("VLLM_")}
    assert switches <= set(family.registered)


@every_family
def test_a_family_obeys_its_own_refusals(family: Family) -> None:
    for each in family.forbidden_values:
        assert each.name not in family.environment or each.value not in {None, family.environment[each.name]}
    assert not family.add_flags.keys() & {*family.forbidden_flags, *family.omit_flags}


@every_family
def test_no_variable_is_empty_and_none_is_a_ranks_own(family: Family) -> None:
    assert all(family.environment.values())
    own = {"VLLM_HOST_IP", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "HF_HOME", "VLLM_PORT", *family.interface_variables}
    assert not own & family.environment.keys()


@every_family
def test_a_family_pins_all_three_interfaces(family: Family) -> None:
    assert set(family.interface_variables) == {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"}


@every_family
def test_regular_graphs_are_asked_for_by_name(family: Family) -> None:
    assert family.environment["VLLM_USE_BREAKABLE_CUDAGRAPH"] == "0"


@every_family
def test_an_image_belongs_to_its_family_alone(family: Family) -> None:
    assert family.image.rpartition(":")[0] in family.repositories
    others = {name for other in FAMILIES.values() if other is not family for name in other.repositories}
    assert not others & set(family.repositories)


def test_stage_c_has_the_drafters_switches_and_anemll_none_of_them() -> None:
    only = set(FAMILIES["stage-c"].registered) - set(FAMILIES["anemll"].registered)
    assert {name for name in only if name.startswith(("VLLM_DSPARK_", "VLLM_DSV4_"))} == {
        "VLLM_DSPARK_GPU_REJECTED_CONTEXT_MASK",
        "VLLM_DSPARK_CONFIDENCE_THRESHOLD",
        "VLLM_DSPARK_CONFIDENCE_SCHEDULER",
        "VLLM_DSPARK_LOCAL_ARGMAX",
        "VLLM_DSPARK_REPLICATE_MARKOV_W1",
        "VLLM_DSPARK_FUSED_MARKOV_ARGMAX",
        "VLLM_DSPARK_REFERENCE_KV_QUANT_DEQUANT",
        "VLLM_DSPARK_HARDWARE_SCHEDULER_EARLY_STOP",
        "VLLM_DSV4_B12X_COMPRESSED_MLA",
        "VLLM_DSV4_DSPARK_DEFER_TARGET_CAPTURE",
        "VLLM_DSV4_DSPARK_DEFER_TARGET_CAPTURE_EXACT",
    }
    assert "VLLM_PREFIX_CACHE_RETENTION_INTERVAL" not in FAMILIES["stage-c"].registered


def test_the_four_baked_in_names_are_known() -> None:
    assert set(FAMILIES["anemll"].baked_in) == {
        "VLLM_BUILD_URL",
        "VLLM_BUILD_COMMIT",
        "VLLM_BUILD_PIPELINE",
        "VLLM_IMAGE_TAG",
    }


def test_a_number_where_a_variable_is_set_has_to_stand_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "families").mkdir()
    text = (
        (data_folder("profiles") / "families" / "anemll.yaml")
        .read_text()
        .replace('NCCL_CROSS_NIC: "1"', "NCCL_CROSS_NIC: 1")
    )
    (tmp_path / "families" / "anemll.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"`environment\.NCCL_CROSS_NIC` is 1") as caught:
        load_family("anemll", SearchPath((tmp_path,)))
    assert "in quotes" in caught.value.remedy
